"""What a run learns: to translate, to predict tokens of a text, or to label texts."""
