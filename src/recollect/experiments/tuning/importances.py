"""How much each setting tells good trials from others: optuna's PED-ANOVA, without scikit-learn."""

from collections.abc import Sequence
from typing import Final

from recollect.experiments.tuning.optional import optuna
from recollect.experiments.tuning.plan import Searched
from recollect.experiments.tuning.suggest import Past, as_optuna

FEWEST: Final = 6  # complete trials; of fewer a share would say more than is known


def importances(search: Searched, trials: Sequence[Past]) -> dict[str, float]:
    """Return the share of each setting, largest first; none of a few trials or of one setting.

    Only trials that are complete count: one that was pruned has no final accuracy.
    """
    complete = [past for past in trials if past.state == "complete"]
    if len(complete) < FEWEST or len(search.space) < 2:
        return {}
    study = optuna().create_study(direction="maximize")
    study.add_trials([as_optuna(search, past) for past in complete])
    evaluator = optuna().importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
    found = optuna().importance.get_param_importances(study, evaluator=evaluator)
    return {key: float(share) for key, share in found.items()}
