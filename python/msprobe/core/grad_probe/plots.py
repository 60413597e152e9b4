"""Similarities over steps as a picture: .png where matplotlib is installed, .svg otherwise."""

from html import escape

from ..._capture.files import write_file

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 360, 70, 40, 36


def write_plot(path: str, name: str, steps: list, values: list) -> str:
    """Draws one row of similarities.

    Args:
        path: Of the picture, without its suffix.
        name: Of the parameter.
        steps: Their numbers.
        values: Similarities, 0 to 1, one a step.

    Returns:
        The path of the picture.

    Raises:
        OSError: It cannot be written.
    """
    title = f"{name}_similarities"
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        write_file(f"{path}.svg", _svg(title, steps, values).encode())
        return f"{path}.svg"
    figure = Figure()
    FigureCanvasAgg(figure)  # no window, whatever the program uses
    axes = figure.subplots()
    axes.plot(steps, values)
    axes.set(xlabel="steps", ylabel="similarities", title=title)
    figure.savefig(f"{path}.png")
    return f"{path}.png"


def _svg(title: str, steps: list, values: list) -> str:
    low, high = min(values), max(values)
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    span = max(steps[-1] - steps[0], 1)

    def x(step: float) -> float:
        return _LEFT + (step - steps[0]) / span * (_WIDTH - _LEFT - 20)

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    line = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in zip(steps, values))
    marks = [low + (high - low) * i / 4 for i in range(5)]
    grid = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#dde"/>'
        f'<text x="{_LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.4g}</text>'
        for v in marks
    )
    ends = "".join(
        f'<text x="{x(s):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{s}</text>'
        for s in sorted({steps[0], steps[-1]})
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}</text>{grid}{ends}'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 4}" text-anchor="middle">steps</text>'
        f'<text transform="translate(14 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">similarities</text>'
        f'<polyline points="{line}" fill="none" stroke="#1f5fd0" stroke-width="2"/></svg>\n'
    )
