"""The server: the APIs of LibreTranslate, DeepL and heed itself over HTTP, and the page."""
