"""The application: all routes, and every failure as an answer in the shape of its API."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import libretranslate


def make_app(service: Service) -> Starlette:
    """The ASGI application of a service."""

    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return JSONResponse(
            libretranslate.spell(error), status_code=error.status, headers=error.headers
        )

    return Starlette(
        routes=libretranslate.routes(service),
        exception_handlers={Refusal: refused},
    )
