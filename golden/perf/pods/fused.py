"""Several models of one shape as one job: the same products for each, layer by layer, so that they share rounds."""

from dataclasses import replace

from .graph import Gemm, Graph


def jobs(graph: Graph, count: int) -> Graph:
    """``count`` models of a graph, each with weights of its own, as one.

    Product p of model b is number ``p * count + b``; models read nothing of each other.
    """
    def moved(sources, model):
        return {source * count + model: reach for source, reach in sources.items()}
    gemms: list[Gemm] = []
    for each in graph.gemms:
        gemms += [replace(each, name=f"{each.name}/{model}", sources=moved(each.sources, model),
                          parts=tuple((size, moved(sources, model)) for size, sources in each.parts))
                  for model in range(count)]
    return Graph(f"{count} x {graph.name}", tuple(gemms))
