"""Names that TrainerMon had in earlier releases of mindstudio-probe."""

from typing import Any

from ..._capture.log import logger
from ..._capture.words import say


class EarlierCalls:
    """What scripts of those releases call."""

    optimizer_trans: Any = None
    config: Any
    monitoring: bool
    _modules: Any

    def set_wrapped_optimizer(self, optimizer: Any) -> None:
        """Gives the optimizer for monitor_gnorm_with_ad().

        Args:
            optimizer: That trains the model.
        """
        self.optimizer_trans = optimizer

    def monitor_gnorm_with_ad(
        self,
        model: Any,
        optimizer: Any = None,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """The earlier name of set_monitor().

        Args:
            model: As there.
            optimizer: As there; None: that of set_wrapped_optimizer().
            grad_acc_steps: As there.
            tp_group: As there.
            dp_group: As there.
            start_iteration: As there.

        Raises:
            ValueError: There is no optimizer.
        """
        optimizer = optimizer if optimizer is not None else self.optimizer_trans
        if optimizer is None:
            raise ValueError(
                say("monitor_gnorm_with_ad: there is no optimizer: call set_wrapped_optimizer() first or give one")
            )
        self.set_monitor(model, optimizer, grad_acc_steps, tp_group, dp_group, start_iteration)

    def reload_xy(self, xy_distribution: bool = False) -> None:
        """Begins or ends the monitoring of activations; DYNAMIC_MONITOR replaces it.

        Args:
            xy_distribution: Whether they are monitored from now on.
        """
        logger.warning("monitor: reload_xy() is an earlier interface: set DYNAMIC_MONITOR and change the configuration")
        self.config.xy_distribution = xy_distribution
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        if self.monitoring:
            self._watch_modules()
