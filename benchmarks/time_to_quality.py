# ruff: noqa: T201 (a script speaks to its terminal)
"""How soon a translator is good: heed and its peers on the same pairs, side by side.

    python benchmarks/time_to_quality.py --out race --times 5m,15m,60m --peer-time 60m \
        --src train.en.gz --tgt train.de.gz --dev-src val.en.gz --dev-tgt val.de.gz \
        --test-src test.en.gz --test-tgt test.de.gz
    python benchmarks/time_to_quality.py --out race --plot-only --plot time-to-quality.svg

Each training runs on a core of its own, as many at a time as there are cores (`--jobs`); its
moments are kept at growing intervals while it runs, at no cost to it, and translated afterwards by
the system's own search. Time is what the command has cost since its start: CPU-seconds on one
thread, so that other work on the machine hardly counts, else wall-clock. For heed it includes
cleaning, vocabulary and its validations; the peers get heed's pieces for nothing, do not validate,
and are judged by the best of their moments on the test set itself.

heed's schedule ends with the time given, so it runs once for each of `--times`, and what counts is
the model it leaves; it goes by the clock on the wall, so leave the machine alone meanwhile. The
peers' schedules are open: one run of `--peer-time` gives the whole curve.
All is kept in `--out`; interrupted, the same command goes on. Not here: the systems (`peers.py`),
what is made of the numbers (`curves.py`), speed alone (`train_speed.py`).
"""

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import curves
import peers
import train_speed
from curves import Point, Record

FIRST_S = 60.0
"""When the first moment is kept."""
POLL_S = 0.2
GRACE_S = 5.0
"""How long the last moment may take to be written."""
METRICS = ("bleu", "chrf")
STARTED: list[subprocess.Popen[bytes]] = []
DEFAULT_CASES = "heed,eole,eole tuned,JoeyNMT,transformers"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training to be made, kept and scored; `folder` remembers how far it is."""

    case: str
    task: peers.Task
    growth: float

    @property
    def system(self) -> peers.System:
        """What is trained."""
        return peers.system_of(self.case)[0]

    @property
    def record(self) -> Path:
        """The file with what is known."""
        return self.task.run / "record.json"

    @property
    def moments(self) -> Path:
        """The folder of kept moments."""
        return self.task.run / "moments"

    def save(self, points: Sequence[Point]) -> None:
        """Remember; whole or not at all."""
        whole = Record(
            case=self.case, seed=self.task.seed, time_s=self.task.time_s, points=list(points)
        )
        draft = self.record.with_suffix(".new")
        draft.write_text(json.dumps(asdict(whole), indent=1), "utf-8")
        draft.rename(self.record)


def read_record(path: Path) -> Record:
    """What `Job.save` wrote."""
    values = json.loads(path.read_text("utf-8"))
    return Record(**{**values, "points": [Point(**point) for point in values["points"]]})


# ---- training, watched from outside


def cpu_seconds(pid: int) -> float:
    """What a process has cost so far, its own threads and ended children included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def start(
    command: peers.Command, job: Job, core: int, log: Path, output: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a command of a system on a core, what it says into `log`, what it prints into `output`.

    Without `output`, all goes into `log`.
    """
    threads = str(job.task.threads)
    environment = {
        **os.environ,
        **train_speed.MALLOC,
        "OMP_NUM_THREADS": threads,
        "CUDA_VISIBLE_DEVICES": "",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    with (
        (job.task.data / "test.src").open("rb") as test,
        log.open("ab") as said,
        (output or log).open("ab") as printed,
    ):
        process = subprocess.Popen(
            command, stdin=test, stdout=printed, stderr=said, env=environment, cwd=job.task.run
        )
    STARTED.append(process)
    if job.task.threads == 1:
        os.sched_setaffinity(process.pid, {core})
    return process


@dataclass(kw_only=True)
class Watch:
    """Notes what a training has cost whenever it saves, and keeps some of what it saves."""

    job: Job
    process: subprocess.Popen[bytes]
    started_at: float

    def __post_init__(self) -> None:
        self.due_s = FIRST_S
        self.seen: set[Path] = set()
        self.points: list[Point] = []

    def look(self) -> None:
        """Keep what has been saved since the last look, if it is time for it."""
        system = self.job.system
        for file in sorted(set(self.job.task.model.glob(system.saved)) - self.seen):
            self.seen.add(file)
            point = self.now(file.parent.name if system.is_folder else file.name)
            if point.seconds >= self.due_s and keep(file, self.job, point.name):
                self.points.append(point)
                self.due_s = point.seconds * self.job.growth

    def now(self, name: str, *, is_end: bool = False, cpu_s: float | None = None) -> Point:
        """This moment."""
        wall_s = time.monotonic() - self.started_at
        cpu_s = cpu_seconds(self.process.pid) if cpu_s is None else cpu_s
        seconds = cpu_s if self.job.task.threads == 1 else wall_s
        return Point(name=name, seconds=seconds, wall_s=wall_s, is_end=is_end)

    @property
    def is_over(self) -> bool:
        """The last moment lies behind the time given."""
        return bool(self.points) and self.points[-1].seconds >= self.job.task.time_s


def keep(file: Path, job: Job, name: str) -> bool:
    """Keep a moment by links: no copying, and the system may delete its own; False if it has."""
    target = job.moments / name
    try:
        if job.system.is_folder:
            without = shutil.ignore_patterns("optimizer*")
            shutil.copytree(file.parent, target, copy_function=os.link, ignore=without)
        else:
            os.link(file, target)
    except (OSError, shutil.Error):
        return False
    return True


def train(job: Job, core: int) -> None:
    """Train from the start and remember the moments; an ended training is not made again."""
    if job.record.exists():
        return
    shutil.rmtree(job.task.run, ignore_errors=True)
    job.moments.mkdir(parents=True)
    command = job.system.train(job.task)
    log = job.task.run / "train.log"
    started_at = time.monotonic()
    watch = Watch(job=job, process=start(command, job, core, log), started_at=started_at)
    has_end = curves.is_ours(job.case)
    while True:
        pid, status, usage = os.wait4(watch.process.pid, os.WNOHANG)
        if pid:
            watch.process.returncode = os.waitstatus_to_exitcode(status)
            break
        watch.look()
        # Its last save may be any time away; what it saves next ends an open training.
        watch.due_s = min(watch.due_s, job.task.time_s)
        if watch.is_over and not has_end:
            time.sleep(GRACE_S)
            watch.process.kill()
            watch.process.wait()
            break
        time.sleep(POLL_S)
    if pid and (status or not has_end):
        raise RuntimeError(f"{job.case} ended before its time; it said in {log}:\n{tail(log)}")
    if has_end:
        cpu_s = usage.ru_utime + usage.ru_stime
        watch.points.append(watch.now("end", is_end=True, cpu_s=cpu_s))
    job.save(watch.points)


def tail(log: Path) -> str:
    """The end of what a command said."""
    return log.read_text("utf-8", errors="replace")[-2000:]


# ---- translating and scoring


def score(job: Job, core: int, references: Sequence[str], target_lang: str) -> None:
    """Translate with each kept moment and remember its scores; a scored one is not done again."""
    points = read_record(job.record).points
    for number, point in enumerate(points):
        if not point.scores:
            lines = translate(job, core, point)
            points[number] = replace(point, scores=scores_of(lines, references, target_lang))
            job.save(points)
            print(f"{describe(job)}: {describe_point(points[number])}", file=sys.stderr)
    shutil.rmtree(job.moments, ignore_errors=True)


def translate(job: Job, core: int, point: Point) -> list[str]:
    """The test set as this moment translates it."""
    output = output_of(job.task.run, point)
    output.unlink(missing_ok=True)
    model = job.task.model if point.is_end else job.moments / point.name
    system, log = job.system, job.task.run / "translate.log"
    command = system.translate(job.task, model, output)
    if start(command, job, core, log, output if system.prints else None).wait():
        raise RuntimeError(f"{job.case} does not translate; it said in {log}:\n{tail(log)}")
    lines = read_lines(output)
    if not curves.is_ours(job.case):
        lines = peers.text_of(lines, job.task.data)
        output.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    if not point.is_end:
        shutil.rmtree(model) if model.is_dir() else model.unlink()
    return lines


def output_of(run: Path, point: Point) -> Path:
    """Where the translations of a moment are."""
    return run / f"{point.name}.txt"


def read_lines(path: Path | str) -> list[str]:
    """Lines, plain or compressed."""
    from heed.data.lines import read_lines as read

    return list(read(path))


def scores_of(lines: list[str], references: Sequence[str], target_lang: str) -> dict[str, float]:
    """BLEU and chrF as sacreBLEU counts them."""
    from heed.evaluate.counts import Reading
    from heed.evaluate.metrics import count

    reading = Reading(target_lang=target_lang)
    counts = count(lines, [references], metrics=METRICS, reading=reading)
    return {metric: counts[metric].of() for metric in METRICS}


def equal_time(settings: argparse.Namespace, records: Sequence[Record]) -> str:
    """The table of paired bootstrap tests at equal time."""
    from heed.evaluate.counts import Reading
    from heed.evaluate.metrics import compare

    references, reading = read_lines(settings.test_tgt), Reading(target_lang=settings.target_lang)
    found = []
    for pairing in curves.pairings(records):
        ours, theirs = (
            read_lines(output_of(settings.out / slug(run), point))
            for run, point in ((pairing.ours, pairing.end), (pairing.theirs, pairing.best))
        )
        found.append(
            (pairing, compare(theirs, ours, [references], metrics=METRICS, reading=reading))
        )
    return curves.equal_time_table(found)


# ---- all of them


def slug(record: Record | Job) -> str:
    """The name of a run's folder."""
    of = record.task if isinstance(record, Job) else record
    return f"{record.case.replace(' ', '-')}-{of.time_s:g}s-seed{of.seed}"


def describe(job: Job) -> str:
    """A job in words."""
    return f"{job.case}, {job.task.time_s / 60:g} minutes, seed {job.task.seed}"


def describe_point(point: Point) -> str:
    """A moment in words."""
    scores = " ".join(f"{metric} {value:.2f}" for metric, value in point.scores.items())
    return f"after {point.seconds / 60:.1f} minutes {scores}"


def jobs_of(settings: argparse.Namespace) -> list[Job]:
    """Every training, seed by seed, so that the first seed is complete first."""
    names = ("src", "tgt", "dev_src", "dev_tgt", "test_src")
    corpus = {name: str(Path(getattr(settings, name)).absolute()) for name in names}
    jobs = []
    for seed, case in itertools.product(settings.seeds, settings.cases):
        for time_s in settings.times if curves.is_ours(case) else [settings.peer_time]:
            record = Record(case=case, seed=seed, time_s=time_s, points=[])
            system, preset = peers.system_of(case)
            task = peers.Task(
                corpus=corpus,
                data=settings.out / "data",
                run=settings.out / slug(record),
                python=peers.install(system.packages, settings.peers),
                time_s=time_s,
                seed=seed,
                preset=preset,
                threads=settings.threads,
                beam_size=settings.beam,
            )
            jobs.append(Job(case=case, task=task, growth=settings.growth))
    return jobs


def run_all(settings: argparse.Namespace) -> None:
    """Make what is missing, `--jobs` at a time."""
    jobs = jobs_of(settings)
    if not (settings.out / "data" / "vocab.spm").exists():
        peers.write_pieces(jobs[0].task.corpus, settings.out / "data")
    references = read_lines(settings.test_tgt)
    cores: SimpleQueue[int] = SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[: settings.jobs]:
        cores.put(core)

    def run(job: Job) -> None:
        core = cores.get()
        try:
            print(f"{describe(job)}: begins", file=sys.stderr)
            train(job, core)
            score(job, core, references, settings.target_lang)
        except RuntimeError as error:
            print(error, file=sys.stderr)
        finally:
            cores.put(core)

    workers = ThreadPoolExecutor(settings.jobs)
    try:
        list(workers.map(run, jobs))
    finally:
        workers.shutdown(wait=False, cancel_futures=True)
        for process in STARTED:
            if process.poll() is None:
                process.kill()


def durations(text: str) -> list[float]:
    """Seconds from `5m,15m`."""
    from heed.config import parse_duration

    return [parse_duration(part) for part in text.split(",")]


def cases(text: str) -> list[str]:
    """Cases from their names."""
    names = text.split(",")
    for name in names:
        try:
            peers.system_of(name)
        except KeyError:
            known = f"{', '.join(peers.SYSTEMS)} or one of these and a preset such as tiny"
            raise argparse.ArgumentTypeError(f"a case is {known}, but not {name!r}") from None
    return names


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="keeps everything")
    for name in ("src", "tgt", "dev-src", "dev-tgt", "test-src", "test-tgt"):
        whole.add_argument(f"--{name}", metavar="FILE")
    whole.add_argument(
        "--cases",
        type=cases,
        default=DEFAULT_CASES,
        help=f"{'; '.join(peers.SYSTEMS)}; each also with a network: eole tiny",
    )
    whole.add_argument("--times", type=durations, default="5m,15m,60m", help="heed's, one run each")
    whole.add_argument("--peer-time", type=lambda text: durations(text)[0], default="60m")
    whole.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default="1")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--jobs", type=int, help="trainings at a time; default: cores / threads")
    whole.add_argument("--beam", type=int, default=5)
    whole.add_argument(
        "--growth", type=float, default=1.25, help="from one kept moment to the next"
    )
    whole.add_argument(
        "--scores", type=lambda text: [float(s) for s in text.split(",")], default="25,30"
    )
    whole.add_argument("--target-lang", default="", metavar="CODE", help="how BLEU cuts words")
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--plot", type=Path, metavar="FILE.svg")
    whole.add_argument("--title", default="BLEU on the test set, one core")
    whole.add_argument("--plot-only", action="store_true", help="tables and plot of what is there")
    return whole


def main(arguments: list[str]) -> None:
    """Train, translate, score; print the tables and draw the picture."""
    settings = parser().parse_args(arguments)
    settings.out, settings.peers = settings.out.absolute(), settings.peers.absolute()
    settings.out.mkdir(parents=True, exist_ok=True)
    n_cores = len(os.sched_getaffinity(0))
    settings.jobs = settings.jobs or max(1, n_cores // settings.threads)
    asked = settings.out / "asked.json"
    if settings.plot_only:
        settings.test_tgt, settings.target_lang = json.loads(asked.read_text("utf-8"))
    else:
        missing = [
            name
            for name in ("src", "tgt", "dev_src", "dev_tgt", "test_src", "test_tgt")
            if not getattr(settings, name)
        ]
        if missing:
            parser().error(f"give --{missing[0].replace('_', '-')}")
        asked.write_text(json.dumps([settings.test_tgt, settings.target_lang]), "utf-8")
        run_all(settings)
    records = [read_record(path) for path in settings.out.glob("*/record.json")]
    records.sort(
        key=lambda record: (
            not curves.is_ours(record.case),
            record.case,
            record.seed,
            record.time_s,
        )
    )
    print(curves.time_table(records, settings.scores), equal_time(settings, records), sep="\n\n")
    if settings.plot:
        settings.plot.parent.mkdir(parents=True, exist_ok=True)
        settings.plot.write_text(curves.picture(records, settings.title), "utf-8")


if __name__ == "__main__":
    # Ended from outside, it ends what it has started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    main(sys.argv[1:])
