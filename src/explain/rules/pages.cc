// The pages of docs/rules: meaning and measurement by topic, remedies from the file of each framework.
//
// A topic is what a reader looks up ("Waiting for data"), a rule is how one cause of it is found in one
// framework. Several rules share a topic, so its meaning stands here once; what is tried is printed from the
// rules themselves, and cannot differ from what the program does. Topics without rules are told all the same,
// with what does see them.

#include <algorithm>
#include <cctype>

#include "explain/rules/parts.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

constexpr int kPageWidth = 120;  // of a line of the page

const char* const kPaired =
    "Your script runs as it is and, in another process, with one thing changed from outside: the changed run. Short "
    "bursts of steps of the two alternate, in several fresh pairs of processes. The cause is named only if the changed "
    "run is faster by more than 2%; the probability that anything that is said is wrong is 1%.";

const std::vector<Topic> kTopics = {
    {"R1", "Waiting for data",
     "The step is ready, and its batch is not: the processor that computes stands still while rows are read, "
     "decoded or changed. What the model costs does not matter then.",
     "The time that the loop waits for each batch is measured. The changed run gets the same first batch again "
     "and again: what it gains is the most that any faster input can give."},
    {"R2", "Rows fetched one by one",
     "The data lies in memory as one array, and a loader takes its rows one by one in Python, and then puts "
     "them together again to a batch. One indexing with all rows of a batch does the same in a fraction of "
     "the time.",
     kPaired},
    {"R3", "Workers that cost more than they save",
     "Processes that prepare batches have to be started, and each batch is copied from one process to another. "
     "For small or cheap batches that takes longer than preparing them.",
     kPaired},
    {"R4", "Workers that start again, and saving too often",
     "Loader processes that end with each epoch are started again for the next one, which takes up to seconds. "
     "A checkpoint at each step, or each epoch of a short one, costs the same way: time between steps, not in "
     "them.",
     kPaired},
    {"R5", "What every epoch costs",
     "Validation, callbacks and the start of an epoch take their time however few steps the epoch has. With "
     "short epochs they can be most of the whole.",
     kPaired},
    {"R6", "Many small ops, each started alone",
     "Starting an op takes some microseconds in the framework and in Python. A model of many small ops spends "
     "its time with starting them: the step takes as long with half the batch.",
     kPaired},
    {"R7", "Compiling again and again",
     "A compiled function holds for the shapes and Python values that it was compiled for. A last batch that is "
     "smaller, sequences of all lengths, or a Python number that changes compile it anew.",
     "Compilations after the first steps are counted, with their time. The changed run keeps shapes equal."},
    {"R8", "A compiled model that is slower",
     "Where Python code breaks the graph in pieces, or where ops are large enough already, compiling costs "
     "time and gains none.",
     kPaired},
    {"R9", "Compiling that does not pay for itself",
     "Compiling takes seconds to minutes before the first step. If it saves a millisecond a step, it pays after "
     "thousands of steps.",
     "Set-up and first steps are a phase of their own in the answer. How many steps it takes until compiling "
     "has paid is printed where a run without compiling was made."},
    {"R10", "A recurrent layer without its fast kernel",
     "Recurrent layers have fast kernels for their usual form alone. Another activation, dropout inside the "
     "recurrence or a hand-written loop over the time steps computes step by step.",
     "Cells that the script calls step by step are counted. No switch can replace them from outside, so "
     "Bakeoff says that it has seen them and does not call them a cause."},
    {"R11", "Waiting for results in every step",
     "Reading a number from the device makes Python wait until all work before it is done, so that Python and "
     "the device work in turn and not at the same time.",
     kPaired},
    {"R12", "Memory that grows",
     "A loss that is kept holds all activations of its step. Memory grows from step to step until the machine "
     "swaps or the process is killed.",
     "Resident memory is fitted over the steps, and graphs that are kept are counted. The changed run frees "
     "them."},
    {"R13", "Denormal numbers",
     "Numbers below 1e-38 in float32 are handled by many processors in a slow path, tens of times slower than "
     "others. They appear where values decay: dead units, weight decay, long averages.",
     "The share of denormal numbers in parameters, gradients and optimizer state is counted. The changed run sets "
     "them to 0; denormals that cost nothing are not named."},
    {"R14", "Too few or too many threads",
     "Fewer threads than processors leave some idle; more of them wait for each other.", kPaired},
    {"R15", "A busy machine", "Other processes that want the same processors make any time a matter of luck.",
     "Bursts of all runs alternate, so what slows the machine hits all of them. The processors' time that others take "
     "meanwhile is measured, and said from 10% on. If what is left is too noisy, Bakeoff says that nothing is certain, "
     "and does not guess."},
    {"R16", "Half precision that the machine has not",
     "Processors without arithmetic for bfloat16 or float16 convert every number to float32 and back.",
     kPaired},
    {"R17", "Debugging that was left on",
     "Checks of every result, eager execution, prints, logs and garbage collections at each step serve when "
     "something is wrong, and cost time when nothing is.",
     kPaired},
    {"R18", "A clock that stops too early",
     "Devices compute while Python goes on. A clock around a call measures how long it took to ask, not to "
     "compute.",
     "Where a framework computes while the loop goes on, each read of a clock in the loop is looked at: if at least "
     "half of them come while results are still computed, it is said. Bakeoff itself does not use the script's clock: each of its "
     "bursts ends when all results are there."},
    {"R19", "Not the same work",
     "Two scripts with other batches, precision, parameters, optimizers or threads do other work, and their "
     "times say nothing about frameworks.",
     "Parameters, samples of a step, number formats, optimizers, losses and devices of the two are compared "
     "first, and what differs is listed before any word on speed. A precision that can be switched is tried like "
     "any other cause."},
    {"R20", "Another loss from the same weights",
     "Ports go wrong in small things: a mean in place of a sum, another epsilon, a layout, weight decay.",
     "`bakeoff parity` compares losses, gradients and updates with a float64 referee and names the first tensor "
     "that differs. `bakeoff explain` shows the first loss of both scripts."},
    {"R21", "Shapes that broadcast in the loss",
     "Predictions of shape (N, 1) against targets of shape (N) give a table of N x N differences, and a loss "
     "that looks right and trains to the mean.",
     "The shapes that the loss gets are seen; a difference is said as a fault of the result, not of speed."},
    {"R22", "Softmax twice",
     "A loss that takes logits, given probabilities, cannot fall below a floor: the model learns little.",
     "What the loss gets is looked at in the first steps; rows that add up to 1 are said as a fault of the "
     "result."},
    {"R23", "Batch and time exchanged",
     "A recurrent layer that takes time first, given the batch first, mixes samples and ignores the past.",
     "A recurrent layer that takes time first and gets an input whose first axis has as many rows as "
     "the loss compares is said as a fault of the result. `bakeoff import` proves a model against its port, with "
     "gradients."},
    {"R24", "Parameters that do not move",
     "Gradients that are set to 0 at the wrong place, or layers frozen by mistake, train nothing.",
     "Parameters that want gradients and stay equal bit for bit over all observed steps are named."},
    {"R25", "Parts of a batch that do not add up",
     "Gradients of several small batches equal those of the whole only if each is weighted by its samples or "
     "tokens.",
     "`bakeoff parity` compares gradients of a batch with the referee. `bakeoff explain` does not see it."},
    {"R26", "A regression", "The same recipe is slower than it was.",
     "`bakeoff report` compares races; a difference counts where it is outside of what equal runs show."},
    {"R27", "At the limit of arithmetic",
     "The step computes as many operations a second as the machine can: only lower precision or a smaller "
     "model is faster.",
     "`bakeoff run` compares each contender with the machine's own measured peak."},
    {"R28", "At the limit of memory",
     "The step moves as many bytes a second as the memory can. Fusing ops and a memory layout that kernels "
     "like move fewer.",
     kPaired},
    {"R29", "Memory given back and asked for again",
     "The C library returns large blocks to the system when they are freed. A step that frees and allocates its "
     "activations then gets empty pages again and again, and each page that is touched for the first time "
     "interrupts the program.",
     kPaired},
    {"R30", "One by one, or all of it again",
     "A loop in Python over rows, time steps or elements starts an op for each, where one op would take them all. And some "
     "lines copy, search, sort or build the whole of something for each small part of it.",
     "Looks at the stack, every 5 ms, say how much of the time is spent in a line or a loop, and the text of the line says what "
     "it does. Two steps are traced, to count the rounds of each loop. Of two scripts, what the other one spends on the same is "
     "left out."},
    {"R31", "Ops of the framework",
     "A line like `loss.backward()`, a layer or a compiled step is made of ops, and one of them may take most of the time: a "
     "sort, a copy, an update of places given by indices.",
     "The framework's own profiler runs in two steps, behind those that are timed, and names the ops and what each takes in all "
     "threads. Of two scripts the same ops are compared; what the other script spends more on any op counts against it. Four "
     "fifths of what remains are booked."},
    {"R32", "What the other script writes differently",
     "Two scripts that are to do the same differ in a few lines, and one of them may be the reason of a gap: an array that is not "
     "donated, a whole matrix of which a part is used, work that the other script does once.",
     "The texts of the two scripts are compared line by line. Looks at the stack every 5 ms say how much longer each line takes than "
     "the same line of the other script, with what it calls; names in a line lead to the lines that define them. Where at least 40% "
     "of the gap lies in lines that run such a difference, its time is booked. Differences that need one another, by their names, "
     "belong together. Where there are several groups of them, a copy of the script with the other's lines of one group runs beside "
     "it, and confirms the group or clears it; where there is one, the other script is that copy. That a part of a group is the "
     "reason is read from the text."},
};

std::string changes_of(const Rule& rule) {
  std::string text = rule.change;
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, "N");
  return text;
}

std::string heading_of(const Topic& topic) { return fmt::format("{}: {}", topic.id, topic.title); }

// The name by which GitHub links to a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return anchor;
}

// The column's words of a rule for every framework.
std::string framework_of(const Rule& rule) { return *rule.framework == '\0' ? "any" : rule.framework; }

}  // namespace

const std::vector<Topic>& topics() { return kTopics; }

std::string page(const std::string& id, bool alone) {
  const auto topic = std::ranges::find(kTopics, id, [](const Topic& t) { return std::string(t.id); });
  if (topic == kTopics.end()) return "";
  std::vector<const Rule*> mine;
  for (const Rule& rule : rules())
    if (rule.id == id) mine.push_back(&rule);
  std::string changes;
  for (auto part : {common_remedies, torch_remedies, keras_remedies, tensorflow_remedies, jax_remedies}) {
    const Remedies all = part();
    if (const auto found = all.changes.find(id); found != all.changes.end())
      changes += fmt::format("| {} | {} |\n", all.framework, found->second);
  }
  std::string text =
      fmt::format("## {}\n\n{}\n", heading_of(*topic), table::paragraph(topic->meaning, kPageWidth));
  if (!changes.empty()) text += "\n### What to change\n\n| framework | change |\n|---|---|\n" + changes;
  const auto has_own = [](const Rule* rule) { return rule->has_switch() && !rule->takes_other_lines(); };
  // The document says once how runs are paired; a section that is printed alone says it itself.
  const bool only_paired = topic->measured == kPaired;
  const bool paired = only_paired || std::ranges::any_of(mine, has_own);
  const std::string pairs = alone ? kPaired : "By [paired runs](#paired-runs).";
  text += "\n### How it is measured\n";
  if (!only_paired) text += "\n" + table::paragraph(topic->measured, kPageWidth) + "\n";
  if (paired) text += "\n" + table::paragraph(pairs, kPageWidth) + "\n";
  if (!mine.empty()) {
    text +=
        "\n### What is tried\n\n| framework | when | what the changed run does | the change in short |\n"
        "|---|---|---|---|\n";
    for (const Rule* rule : mine)
      text += fmt::format(
          "| {} | {} | {} | {}{} |\n", framework_of(*rule), rule->signal,
          rule->has_switch() ? std::string("it ") + rule->method : "none: the time that it took is booked",
          changes_of(*rule), rule->numbers ? " (it may change numbers)" : "");
  }
  return text;
}

std::string index_page() {
  std::string text =
      "# Rules of `bakeoff explain`\n\n" +
      table::paragraph(
          "`bakeoff explain train.py` looks for these causes in a training script. A rule makes a cause suspect; it is "
          "named only if the script is faster with that one thing changed, or if the observed run measured what it takes.",
          kPageWidth) +
      "\n\n| rule | about | causes |\n|---|---|---|\n";
  for (const Topic& topic : kTopics) {
    std::string causes;
    for (const Rule& rule : rules())
      if (std::string(rule.id) == topic.id && causes.find(rule.cause) == std::string::npos)
        causes += (causes.empty() ? "" : "; ") + std::string(rule.cause);
    text +=
        fmt::format("| [{}](#{}) | {} | {} |\n", topic.id, anchor_of(heading_of(topic)), topic.title, causes);
  }
  return text;
}

std::string rules_document() {
  std::string text = index_page() + "\n## Paired runs\n\n" + table::paragraph(kPaired, kPageWidth) + "\n";
  for (const Topic& topic : kTopics) text += "\n" + page(topic.id, false);
  return text;
}

}  // namespace bakeoff::explain
