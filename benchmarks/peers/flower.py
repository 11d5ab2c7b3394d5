"""The same forest in Flower's simulation: clients grow by scikit-learn, a strategy of ours collects the trees.

Run by benchmarks/speed.py as `python flower.py CASE RESULT` with an interpreter that has `flwr[simulation]`. Trees
travel pickled, which is what one writes first; bytes are those of the records that Flower carries.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from scikit import auroc, grown

FOLDER, RESULT = Path(sys.argv[1]), Path(sys.argv[2])
CASE = json.loads((FOLDER / "case.json").read_text())

client = ClientApp()


@client.train()
def train(message: Message, context: Context) -> Message:
    number = int(context.node_config["partition-id"]) + 1
    forest = grown(CASE, FOLDER / f"site-{number}", 1, number)
    packed = np.frombuffer(pickle.dumps(forest.estimators_), dtype=np.uint8)
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": ArrayRecord([packed]), "metrics": metrics}), reply_to=message)


class Collect(FedAvg):
    """Trees are put side by side instead of averaged."""

    def aggregate_train(self, server_round, replies):  # noqa: ARG002
        valid, failed = self._check_and_log_replies(replies, is_train=True)
        assert len(valid) == CASE["sites"], f"{len(failed)} clients failed"
        packed = [reply.content["arrays"].to_numpy_ndarrays()[0] for reply in valid]
        sent = sum(reply.content["arrays"].count_bytes() for reply in valid)
        trees = [tree for one in packed for tree in pickle.loads(one.tobytes())]  # noqa: S301 (of our own making)
        score = auroc(trees, FOLDER / "held_out.csv")
        RESULT.write_text(json.dumps({"auroc": score, "trees": len(trees), "sent": sent, "fetched": None}))
        return ArrayRecord(packed), MetricRecord()


server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:  # noqa: ARG001
    everybody = CASE["sites"]
    strategy = Collect(fraction_evaluate=0.0, min_train_nodes=everybody, min_available_nodes=everybody)
    strategy.start(grid, ArrayRecord([np.zeros(1)]), num_rounds=1, train_config=ConfigRecord())


if __name__ == "__main__":
    run_simulation(server, client, CASE["sites"], backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
