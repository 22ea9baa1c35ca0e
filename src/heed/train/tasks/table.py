"""The tasks by name."""

from heed.train.recipe.asked import TaskName
from heed.train.tasks.classification import CLASSIFICATION
from heed.train.tasks.language_model import LANGUAGE_MODEL
from heed.train.tasks.masked import MASKED_LANGUAGE_MODEL
from heed.train.tasks.task import Task
from heed.train.tasks.translation import TRANSLATION

TASKS: dict[TaskName, Task] = {
    "translate": TRANSLATION,
    "lm": LANGUAGE_MODEL,
    "mlm": MASKED_LANGUAGE_MODEL,
    "classify": CLASSIFICATION,
}
