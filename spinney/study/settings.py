"""The parts of a study that no algorithm owns: features, label, forest, privacy, split, choice."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise
from math import ceil, exp
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spinney.base import Name as Name
from spinney.base import Settings as Settings
from spinney.base import Share as Share
from spinney.study.cuts import FINEST_CUTS, MOST_CUTS, cuts_of, scaled
from spinney.study.definition import FeatureSource, LabelSource

CONTINUOUS_ONLY = ("range", "unit", "resolution", "cuts", "most_cuts")
ColumnName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]
Absent = Literal["missing", "abstain"]
IN_A_BOOTSTRAP = 1 - exp(-1)
"""Share of the patients whom a bootstrap draws."""
JUDGES_PER_TREE = 1.72  # a bootstrap leaves out 0.368 of the patients, and 0.368 * 2.72 = 1
MOST_NODES = 10_000_000  # of one site; nearly half a gigabyte at every other site


class Permit(Settings):
    """A permit to use patients' data, such as an ethics committee's or a data-access body's."""

    reference: str = Field(min_length=1, max_length=200, description="Its number, as the authority writes it.")
    granted_by: str = Field(min_length=1, max_length=200, description="Whose it is.")
    expires: date = Field(description="Its last day, which ends at midnight UTC.")

    def __str__(self) -> str:
        return f"{self.reference} of {self.granted_by}, until {self.expires}"

    def is_over(self, now: datetime) -> bool:
        """Whether the last day has passed."""
        return now.astimezone(UTC).date() > self.expires


def fewest_to_lend(leaf: int) -> int:
    """How many patients have to train, so that a bootstrap of them can be expected to fill two leaves of a size."""
    return ceil(2 * leaf / IN_A_BOOTSTRAP)


class Feature(Settings):
    """One clinical variable, the same at every site."""

    name: Name = Field(description="Column name, the same at every site.")
    kind: Literal["continuous", "binary", "categorical"] = Field(
        description="continuous needs a range, categorical needs categories, binary is 0 or 1."
    )
    unit: str | None = Field(None, description="UCUM unit of a continuous feature, such as mg/dL.")
    range: tuple[float, float] | None = Field(
        None, description="Smallest and largest value of a continuous feature; values beyond are clipped to it."
    )
    resolution: float | None = Field(
        None,
        gt=0,
        description="In which steps values are recorded, in the feature's own unit, such as 1 for whole years; no two "
        "cuts are closer than twice this. Empty: not known.",
    )
    cuts: Literal["equal", "logarithmic"] | tuple[float, ...] = Field(
        "equal",
        description="Where trees may cut a continuous feature: in equal steps, in logarithmic ones, or at these "
        "values, such as [18, 40, 65].",
    )
    most_cuts: int = Field(
        MOST_CUTS, ge=1, le=FINEST_CUTS, description="At most so many cuts; more of them tell more about patients."
    )
    categories: tuple[str, ...] | None = Field(
        None, description="Allowed values of a categorical feature; any other value counts as missing."
    )
    source: FeatureSource | None = Field(None, description="How it is read from coded events or from the patient.")
    column: ColumnName | None = Field(
        None, description="What finished tables call it, where that is not its name: any text, at all sites the same."
    )
    read_as: Literal["bands", "icd-9-chapters", "icd-10-chapters"] | None = Field(
        None,
        description="How words of finished tables are read. bands: [70-80) is 75 and 80+ is 80, for a continuous "
        "feature. icd-9-chapters, icd-10-chapters: 428.0 and I50.9 are circulatory, for a categorical one.",
    )

    @model_validator(mode="after")
    def _tables_are_read_as_they_can_be(self) -> Self:
        if self.source is not None and (self.column is not None or self.read_as is not None):
            raise ValueError(f"column and read_as are for finished tables; {self.name} has a source")
        needed = {None: self.kind, "bands": "continuous"}.get(self.read_as, "categorical")
        if self.kind != needed:
            raise ValueError(f"read_as: {self.read_as} makes a {needed} feature; {self.name} is {self.kind}")
        return self

    @model_validator(mode="after")
    def _kind_has_what_it_needs(self) -> Self:
        continuous, categorical = self.kind == "continuous", self.kind == "categorical"
        if continuous and self.range is None:
            raise ValueError("a continuous feature needs a range, for example [0, 300]")
        if categorical and not self.categories:
            raise ValueError("a categorical feature needs categories, for example [mild, severe]")
        said = [name for name in CONTINUOUS_ONLY if getattr(self, name) != type(self).model_fields[name].default]
        if said and not continuous:
            raise ValueError(f"{', '.join(said)} belong to continuous features; {self.name} is {self.kind}")
        if not categorical and self.categories is not None:
            raise ValueError(f"categories belong to categorical features; {self.name} is {self.kind}")
        if self.range is not None:
            low, high = self.range
            if not (-1e15 < low < high < 1e15):
                raise ValueError(f"range must rise from its first to its second number, got [{low:g}, {high:g}]")
            if any(one >= two for one, two in pairwise(self.scaled_cuts)):
                raise ValueError("cuts are so close that they can't be told apart; list fewer, or lower most_cuts")
        if self.categories is not None and len(set(self.categories)) != len(self.categories):
            raise ValueError("categories must differ from each other")
        return self

    @property
    def scaled_cuts(self) -> tuple[float, ...]:
        """Where trees may cut the feature's columns, scaled to 0..1, and 1 behind them."""
        if self.range is None:
            return (0.5, 1.0)
        return scaled(cuts_of(self.range, self.resolution, self.cuts, self.most_cuts), self.range)


class Label(Settings):
    """What is predicted: yes or no."""

    name: Name = Field(description="Column that holds the outcome.")
    positive: tuple[str, ...] = Field(
        ("1", "1.0", "true", "True", "yes"), min_length=1, description="Values that mean yes; all others mean no."
    )
    source: LabelSource | None = Field(None, description="What makes it yes, and within which horizon.")
    column: ColumnName | None = Field(None, description="What finished tables call it, where that is not its name.")


class Tuning(Settings):
    """Local search for forest settings, before growing."""

    seconds: float = Field(0, ge=0, description="Time budget; 0 leaves the forest settings as they are.")
    draws: int = Field(30, ge=1, description="Most combinations to try within the budget.")
    folds: int = Field(10, ge=2, le=20, description="Folds of the cross-validation, by patient.")


class ForestSettings(Settings):
    """How every site grows its trees."""

    trees: int = Field(100, ge=1, le=10_000, description="Trees that each site grows and sends.")
    max_depth: int = Field(12, ge=1, le=32, description="Deepest split of a tree; a deeper one is refused.")
    max_leaves: int = Field(4096, ge=2, le=1_000_000, description="Most leaves of a tree; one with more is refused.")
    min_samples_split: int = Field(2, ge=2, description="Fewest rows in a node that may be split.")
    min_samples_leaf: int = Field(5, ge=1, description="Fewest rows in a leaf; the privacy floor counts patients, too.")
    max_features: Literal["sqrt", "log2", "all"] | Annotated[int, Field(ge=1)] = Field(
        "sqrt", description="Features tried at a split; a number is that many columns."
    )
    criterion: Literal["gini", "entropy"] = Field("gini", description="Measure of a split's quality.")
    bootstrap: Literal["by-class", "plain"] = Field(
        "by-class",
        description="Patients with a positive row and those without are drawn apart for a tree, or together.",
    )
    absent: Absent | None = Field(
        None,
        description="What a tree does at a site without a feature that it asks. missing: walk on as if every value "
        "were missing; abstain: have no say. Empty: missing, or abstain where the algorithm is run as published.",
    )
    engine: Literal["spinney", "scikit-learn"] = Field(
        "spinney",
        description="What grows the trees. spinney is the faster, keeps every leaf above the floor while it grows, and "
        "grows the same trees on every machine.",
    )
    tuning: Tuning = Field(Tuning(), description="Local search for better settings, off by default.")

    @model_validator(mode="after")
    def _a_house_can_hold_the_trees(self) -> Self:
        if self.most_nodes > MOST_NODES:
            raise ValueError(
                f"trees, max_depth and max_leaves allow {self.most_nodes:,} nodes from each site, and a house takes "
                f"{MOST_NODES:,}; lower max_leaves to {(MOST_NODES // self.trees + 1) // 2}"
            )
        return self

    @property
    def most_leaves(self) -> int:
        """Most leaves of a tree, by its depth and by what the study says."""
        return min(1 << self.max_depth, self.max_leaves)

    @property
    def most_nodes(self) -> int:
        """Most nodes of all trees of a site."""
        return self.trees * (2 * self.most_leaves - 1)


class Privacy(Settings):
    """What may leave a hospital, and how it is guarded."""

    smallest_cohort: int = Field(
        30,
        ge=10,
        description="A site with fewer training patients stays out altogether; those who are kept aside to measure "
        "don't count. To lend trees it needs more (see `lent_leaf`).",
    )
    smallest_leaf: int = Field(
        5, ge=2, description="Fewest distinct patients in a leaf that stays at home, and in whatever is told of few."
    )
    lent_leaf: int | None = Field(
        None,
        ge=2,
        description="Fewest distinct patients in a leaf that is lent. Empty: 20, or smallest_leaf where the algorithm "
        "is run as published. A site with too few training patients for two such leaves (64 at 20) lends nothing; it "
        "scores, sums and uses. A site may ask for more in site.yaml.",
    )
    largest_advantage: float | None = Field(
        None,
        gt=0,
        le=1,
        description="When an epoch opens, a site attacks the trees that it is about to lend, with 200 patients of its "
        "own or more who have not trained them, and lends none if the attack beats guessing (2 AUC - 1) by more than "
        "this beyond doubt. Empty: no attack.",
    )
    probability_precision: float = Field(0.01, ge=0.001, le=0.25, description="Leaf probabilities are rounded to this.")
    weight_precision: float = Field(0.01, ge=0.001, le=0.25, description="Tree weights are rounded to this.")
    rows_precision: int = Field(10, ge=1, description="A site's number of rows is rounded to this.")
    secure_sum: Literal["masked", "ring", "trusted-third-party"] = Field(
        "masked", description="How confusion counts are added up; two sites can only use trusted-third-party."
    )
    fewest_scoring_sites: int | None = Field(
        None,
        ge=2,
        description="No sum has fewer participants, and a tree that fewer sites can score is not summed. Empty: 3, or "
        "2 with a trusted third party.",
    )
    largest_share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Most of the total weight that one other site's trees may have in a model. Empty: one and a half "
        "times an equal share, 1.5 / number of sites whose trees vote.",
    )
    missing_rates: bool = Field(
        False, description="The characteristic vector also tells the share of missing values of every feature."
    )
    label_rate: bool = Field(
        False, description="The characteristic vector also tells the share of positive outcomes, for clusters and map."
    )
    share_map: bool = Field(
        True,
        description="The coordinator tells the sites where all of them lie on a map of their characteristic vectors.",
    )
    epoch_nights: int | None = Field(
        None,
        ge=1,
        le=366,
        description="For so many nights what was told and lent stays the same: what is new about patients is told once "
        "in them. Empty: 7, or 1 where the algorithm is run as published.",
    )
    share_metrics: bool = Field(False, description="Sites tell the coordinator their own test figures.")

    @model_validator(mode="after")
    def _a_secure_sum_needs_three(self) -> Self:
        if self.secure_sum != "trusted-third-party" and self.fewest_scorers < 3:
            raise ValueError(
                f"{self.secure_sum} needs fewest_scoring_sites of at least 3: with two sites each learns the other's "
                "counts. Use secure_sum: trusted-third-party."
            )
        return self

    @property
    def warning(self) -> str:
        """What whoever signs the study should know about its secure sum; empty for the default."""
        return {
            "masked": "",
            "ring": "secure_sum ring: the owner of a tree learns its summed counts, and by trees that vote alike those "
            "of a site that can't score all of them; two neighbours in the ring who collude see the site between them",
            "trusted-third-party": "secure_sum trusted-third-party: the coordinator sees every site's counts",
        }[self.secure_sum]

    def share_cap(self, sites: int) -> float:
        """Most of the weight that one other site of so many may have, however large it says that it is."""
        return self.largest_share or min(1.5 / max(sites, 1), 1.0)

    @property
    def fewest_scorers(self) -> int:
        """The floor that holds."""
        return self.fewest_scoring_sites or (2 if self.secure_sum == "trusted-third-party" else 3)


class Split(Settings):
    """Who is in which part. With patient identifiers a keyed hash decides, else the seed."""

    test: Share = Field(0.25, description="Share of patients whose rows only measure.")
    validation: Share | None = Field(
        None,
        description="Share of patients kept for choosing; 0: choose by cross-validation. Empty: by size, none below "
        "20,000 patients and a fifth of those who are not in the test part from there on.",
    )
    newest: Share | None = Field(
        None,
        description="Share of the newest index events that are kept aside to measure how time goes by; 0: none. Empty: "
        "a tenth, where rows have index times and that holds enough unseen patients of either class.",
    )
    seed: int = Field(
        0, ge=0, le=2**32 - 1, description="Makes random choices repeatable, in a hospital together with its key."
    )

    @model_validator(mode="after")
    def _training_remains(self) -> Self:
        if 1 - (1 - self.test - (self.validation or 0)) * (1 - (self.newest or 0)) > 0.9:
            raise ValueError("test and validation leave less than a tenth of the patients for training")
        return self


class Choice(Settings):
    """How a site chooses its model, on rows that are not test rows."""

    metric: Literal["auroc", "auprc", "mcc"] = Field("auroc", description="What a better model is better at.")
    folds: int = Field(5, ge=2, le=20, description="Folds of the cross-validation over non-test rows, by patient.")
    repeats: int | None = Field(
        None,
        ge=1,
        le=100,
        description="How often the cross-validation is repeated with other folds. Empty: by size, 10 times with fewer "
        "than 1,000 training patients, else once.",
    )
    judges: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Trees that a site grows only to judge by, out of bag, in cross-validation; they are in no model "
        "and never leave. Empty: 172 for 100 trees, so that a patient is judged by as many own trees as the model has.",
    )
    fewest_patients: int = Field(
        10,
        ge=2,
        description="With fewer patients of either class nothing is chosen; the federated model stands, with its "
        "probabilities moved to the site's base rate.",
    )
    threshold: Literal["mcc", "youden", "sensitivity"] = Field(
        "mcc", description="What the decision threshold aims at."
    )
    sensitivity: float = Field(0.9, gt=0, lt=1, description="Wanted sensitivity, where threshold says so.")
    calibrate: bool = Field(
        True,
        description="Platt scaling on the site's own cross-validated votes. With too few patients for it, or where "
        "votes and outcomes don't rise together, only a move to the site's base rate.",
    )
    bootstrap: int = Field(1000, ge=100, le=100_000, description="Resamples behind every interval.")
    fewest_test_patients: int = Field(
        10, ge=2, description="With fewer test patients of either class no figure is printed."
    )
    admission: Literal["auto", "manual"] = Field(
        "auto", description="manual: at every site a steward decides before a federated model is used."
    )

    def judges_for(self, trees: int) -> int:
        """How many trees judge where so many are lent."""
        return ceil(JUDGES_PER_TREE * trees) if self.judges is None else self.judges


class Schedule(Settings):
    """When rounds are, and how long anybody waits for anybody."""

    cron: str = Field("0 2 * * *", pattern=r"^\S+( \S+){4}$", description="When the coordinator opens a round.")
    timezone: str = Field("UTC", description="Of the schedule, such as Europe/Berlin.")
    answer_minutes: float = Field(60, gt=0, description="A site that has not answered a step by then is left out.")
    opening_minutes: float = Field(180, gt=0, description="How long a site waits for the round to open.")
    retention_days: int = Field(30, ge=1, description="Messages older than this are deleted from the exchange.")
