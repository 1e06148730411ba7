"""Which recipe a posted board asks for, and whether it can be inspected by it."""

from __future__ import annotations

from sqlalchemy import Engine

from serving.errors import FieldError, ModelMismatchError, NotFoundError
from serving.recipes import StoredRecipe, get_recipe
from serving.uploads import Upload


def recipe_of(upload: Upload, engine: Engine, *, loaded: str) -> StoredRecipe | None:
    """The recipe that a board is to be inspected by.

    loaded: the model version that is served.

    Raises:
        FieldError: there is none of that name, or it has references and one was posted.
        ModelMismatchError: it is pinned to a version that is not loaded.
    """
    if upload.recipe is None:
        return None
    try:
        stored = get_recipe(engine, upload.recipe)
    except NotFoundError as error:
        raise FieldError(
            f"recipe: {error}", hint="PUT /v1/recipes/NAME makes one; GET /v1/recipes lists those in use"
        ) from error
    if stored.references and upload.reference is not None:
        raise FieldError(
            f"reference: recipe {stored.name!r} has {len(stored.references)} of its own",
            hint="post the board alone, or take the references out of the recipe",
        )
    pinned = stored.recipe.model_version
    if pinned is not None and pinned != loaded:
        raise ModelMismatchError(
            f"recipe {stored.name!r} is pinned to model version {pinned}, and {loaded} is loaded",
            hint="serve that version, or store the recipe anew with the one that is loaded",
        )
    return stored
