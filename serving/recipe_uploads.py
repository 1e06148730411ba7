"""What requests say of recipes: the body of PUT /v1/recipes/{name}, and the recipe a board is posted with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from pydantic import ValidationError
from sqlalchemy import Engine
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from inspect_vit.golden import LEAST_BOARDS, MOST_BOARDS
from inspect_vit.recipe import Recipe
from serving.bodies import faults
from serving.errors import FieldError, NotFoundError
from serving.recipes import StoredRecipe, get_recipe
from serving.registry import check_pin
from serving.uploads import MAX_TEXT_BYTES, Upload, check_label, check_parts, open_form

MAX_REFERENCES = 8
MAX_FAULTS_CHARS = 600
_EXAMPLE = (
    "curl -X PUT -F 'recipe={\"px_per_mm\": 48}' -F reference=@golden.png http://.../v1/recipes/NAME, or the "
    "settings alone as a JSON body (content-type: application/json)"
)


@dataclass(frozen=True)
class RecipeUpload:
    """What a PUT asks for."""

    recipe: Recipe | None
    """The settings; None: none were sent."""
    references: tuple[tuple[str, bytes], ...]
    """Name and picture of each; the pictures are not decoded yet."""
    good: tuple[bytes, ...]
    """Pictures of good boards to build one reference from, in place of `references`."""

    @property
    def keeps_references(self) -> bool:
        """Nothing was sent in place of the references there are."""
        return not self.references and not self.good


async def read_recipe(request: Request) -> RecipeUpload:
    """Read and check the body.

    Raises:
        FieldError, NotMultipartError, MultipartError: naming what is wrong.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        body = await request.body()
        if len(body) > MAX_TEXT_BYTES:
            raise FieldError(f"recipe: {len(body)} bytes of JSON, wanted at most {MAX_TEXT_BYTES}")
        return RecipeUpload(_parse(body.decode("utf-8", "replace")), (), ())
    async with open_form(request, max_files=MOST_BOARDS + 1, example=_EXAMPLE) as form:
        check_parts(form, files=("reference", "good"), texts=("recipe",), repeated=("reference", "good"))
        text = form.get("recipe")
        recipe = _parse(text) if isinstance(text, str) and text.strip() else None
        references = await _named(form)
        good = [await file.read() for file in form.getlist("good") if isinstance(file, UploadFile)]
    if references and good:
        raise FieldError("reference and good exclude each other", hint="send references, or good boards")
    if good and not LEAST_BOARDS <= len(good) <= MOST_BOARDS:
        raise FieldError(f"good: {len(good)} pictures, wanted {LEAST_BOARDS} to {MOST_BOARDS}")
    return RecipeUpload(recipe, tuple(references), tuple(good))


async def _named(form: FormData) -> list[tuple[str, bytes]]:
    files = [file for file in form.getlist("reference") if isinstance(file, UploadFile)]
    if len(files) > MAX_REFERENCES:
        raise FieldError(f"reference: {len(files)} pictures, wanted at most {MAX_REFERENCES}")
    names: list[str] = []
    for number, file in enumerate(files, start=1):
        name = check_label("reference name", PurePath(file.filename or "").stem.strip() or f"{number}")
        if name in names:
            raise FieldError(
                f"reference: two files are called {name!r}", hint="the file's name is the reference's name"
            )
        names.append(name)
    return [(name, await file.read()) for name, file in zip(names, files, strict=True)]


def _parse(text: str) -> Recipe:
    try:
        return Recipe.model_validate_json(text)
    except ValidationError as error:
        raise FieldError(f"recipe: {'; '.join(faults(error))[:MAX_FAULTS_CHARS]}", hint=_EXAMPLE) from error


def recipe_of(database: Engine, upload: Upload) -> StoredRecipe | None:
    """The recipe that a board is to be inspected by.

    Raises:
        FieldError: there is none of that name, or it has references and one was posted.
        ModelMismatchError: it is pinned to a version that the store does not have.
    """
    if upload.recipe is None:
        return None
    try:
        stored = get_recipe(database, upload.recipe)
    except NotFoundError as error:
        raise FieldError(
            f"recipe: {error}", hint="PUT /v1/recipes/NAME makes one; GET /v1/recipes lists those in use"
        ) from error
    if stored.references and upload.reference is not None:
        raise FieldError(
            f"reference: recipe {stored.name!r} has {len(stored.references)} of its own",
            hint="post the board alone, or take the references out of the recipe",
        )
    if stored.recipe.model_version is not None:
        check_pin(database, stored.name, stored.recipe.model_version)
    return stored
