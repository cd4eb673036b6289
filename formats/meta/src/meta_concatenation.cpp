// SPDX-License-Identifier: Apache-2.0
#include <millrace/meta/meta_concatenation.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>

#include "meta_fields.hpp"

namespace millrace::formats {
namespace {

constexpr std::int64_t most_together = std::numeric_limits<std::int64_t>::max();

/// @pre both are 0 or more
std::int64_t sum(std::int64_t a, std::int64_t b, const char* name) {
  if (a > most_together - b) {
    throw config_error(fmt::format("the sum of the parts' {} exceeds 2^63 - 1", name));
  }
  return a + b;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b, const char* name) {
  return static_cast<std::uint64_t>(
      sum(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b), name));
}

using named_option = std::pair<std::string, std::string>;

// The names of options in a .meta that parts may differ in.
//
// Fill in the middle: each part says how its documents were permuted. Variants of the same
// documents differ in the seed.
constexpr std::array<std::string_view, 9> permutations = {
    "--fim-rate",         "--fim-spm-rate",      "--fim-seed",
    "--fim-prefix-token", "--fim-middle-token",  "--fim-suffix-token",
    "--fim-split-sample", "--fim-fragment-rate", "--fim-no-prefix"};
// The others affect only which documents there are and their order, not their contents.
//
// A sample: samples with equal options, one after another, are a sample of all their inputs.
constexpr std::array<std::string_view, 2> choices = {"--sample-rate", "--sample-seed"};
// The tokens that a run may have, the place at which it ended because of them, and what its
// duplicates were dropped by. True of a concatenation of tasks, of which only the last may have
// such a place.
constexpr std::string_view budget = "--max-tokens";
constexpr std::string_view budget_end = "stopped_before";
constexpr std::string_view drop_duplicates = "--drop-duplicates";
// The rest: even where they are equal, they are not true of a concatenation.
constexpr std::array<std::string_view, 7> orders = {
    budget,          budget_end, drop_duplicates, "--partitions", "shuffle_documents",
    "filtered_from", "filter"};

bool is_order(const named_option& given) {
  return std::ranges::find(orders, given.first) != orders.end();
}
bool is_choice(const named_option& given) {
  return std::ranges::find(choices, given.first) != choices.end();
}
bool is_permutation(const named_option& given) {
  return std::ranges::find(permutations, given.first) != permutations.end();
}

bool is_of_run(const named_option& given) {
  return given.first == budget || given.first == drop_duplicates;
}
bool is_budget_end(const named_option& given) {
  return given.first == budget_end;
}

bool has(const std::vector<named_option>& options, std::string_view name) {
  return std::ranges::find(options, name, &named_option::first) != options.end();
}

std::vector<named_option> only(std::vector<named_option> options,
                               bool (*is_kept)(const named_option&)) {
  std::erase_if(options, [&](const named_option& given) { return !is_kept(given); });
  return options;
}
bool is_of_contents(const named_option& given) {
  return !is_order(given) && !is_choice(given) && !is_permutation(given);
}

/// Appends parts, one after another, to a whole.
class concatenation {
 public:
  explicit concatenation(const dataset_meta& first) : whole_(first) {
    whole_.sum_root.reset();
    if (whole_.mask) whole_.mask->root.clear();
    shifts_.emplace_back();
  }

  /// Appends the next part.
  ///
  /// @param number  position of the part, from 1, for messages
  void append(const dataset_meta& part, std::size_t number) {
    check_equal(part, number);
    append_tasks(part, number);
    append_inputs(part, number);
    append_counts(part, number);
    if (whole_.tokenizer.flags != part.tokenizer.flags) whole_.tokenizer.flags.clear();
    if (whole_.on_bad_record != part.on_bad_record) whole_.on_bad_record = "mixed";
    append_order(part, number);
    whole_.bin_bytes = sum(whole_.bin_bytes, part.bin_bytes, "bytes");
    whole_.sum_version = whole_.sum_version && part.sum_version
                             ? std::max(whole_.sum_version, part.sum_version)
                             : std::nullopt;
    whole_.src_version = whole_.src_version && part.src_version
                             ? std::max(whole_.src_version, part.src_version)
                             : std::nullopt;
    if (!part.mask || (whole_.mask && whole_.mask->version != part.mask->version)) {
      whole_.mask.reset();
    }
    if (whole_.mask)
      whole_.mask->trained = sum(whole_.mask->trained, part.mask->trained, "trained tokens");
  }

  /// Returns the meta of all appended parts. Call this function only once.
  dataset_meta meta() {
    const auto& tasks = whole_.tasks;
    if (tasks && tasks->first == 0 && tasks->last == tasks->of - 1) whole_.tasks.reset();
    return std::move(whole_);
  }
  std::vector<part_shift> shifts() { return std::move(shifts_); }

 private:
  void check_equal(const dataset_meta& part, std::size_t number) const;
  void append_tasks(const dataset_meta& part, std::size_t number);
  void append_share(const std::optional<share_bounds>& next, std::size_t number);
  void append_inputs(const dataset_meta& part, std::size_t number);
  void join(const input_extent& next, std::size_t number);
  void append_counts(const dataset_meta& part, std::size_t number);
  void append_order(const dataset_meta& part, std::size_t number);

  dataset_meta whole_;
  std::vector<part_shift> shifts_;
};

void concatenation::check_equal(const dataset_meta& part, std::size_t number) const {
  const auto equal = [&](const auto& mine, const auto& theirs, const char* what) {
    if (mine == theirs) return;
    const auto shown = [](const auto& value) {
      return command::one_line(fmt::format("{}", value));
    };
    throw config_error(fmt::format("{} of part {} is {}, but {} in the earlier parts", what, number,
                                   shown(theirs), shown(mine)));
  };
  equal(whole_.level, part.level, "the level");
  equal(whole_.key, part.key, "the key");
  equal(whole_.path, part.path, "the path of the key");
  equal(name(whole_.type), name(part.type), "the dtype");
  equal(whole_.tokenizer.type, part.tokenizer.type, "the tokenizer type");
  equal(whole_.tokenizer.fingerprint, part.tokenizer.fingerprint, "the tokenizer's fingerprint");
  equal(whole_.tokenizer.vocab_size, part.tokenizer.vocab_size, "the vocabulary size");
  equal(whole_.tokenizer.eod.value_or(-1), part.tokenizer.eod.value_or(-1),
        "the end-of-document id (-1: none)");
  equal(whole_.append_eod, part.append_eod, "--append-eod");
  if (whole_.tasks || part.tasks) {
    equal(whole_.on_bad_record, part.on_bad_record, "--on-bad-record");
  }
  const auto listed = [](const dataset_meta& meta) {
    std::string text;
    for (const auto& [name, value] : meta.options) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    }
    return fmt::format("\"{}\"", text);
  };
  const bool of_tasks = whole_.tasks || part.tasks;
  const auto differ = [&](bool (*matters)(const named_option&)) {
    return only(whole_.options, matters) != only(part.options, matters);
  };
  const auto matters_to_tasks = [](const named_option& given) {
    return is_choice(given) || is_permutation(given) || is_of_run(given);
  };
  if (differ(is_of_contents) || (of_tasks && differ(matters_to_tasks))) {
    throw config_error(
        command::one_line(fmt::format("the options of part {} are {}, but {} in the earlier parts",
                                      number, listed(part), listed(whole_))));
  }
}

void concatenation::append_tasks(const dataset_meta& part, std::size_t number) {
  if (whole_.tasks.has_value() != part.tasks.has_value()) {
    throw config_error(fmt::format("part {} is {}, but the earlier parts are {}", number,
                                   part.tasks ? "the output of a task" : "a whole dataset",
                                   part.tasks ? "whole datasets" : "outputs of tasks"));
  }
  if (!part.tasks) return;
  const task_range& next = *part.tasks;
  task_range& before = *whole_.tasks;
  if (next.of != before.of) {
    throw config_error(fmt::format(
        "part {} comes from a run of {} tasks, but the earlier parts come from a run of {}", number,
        next.of, before.of));
  }
  if (next.first != before.last + 1) {
    throw config_error(fmt::format(
        "part {} begins with task {} of {}, counted from 0, expected task {}: {}, or the parts are "
        "out of order",
        number, next.first, next.of, before.last + 1,
        next.first <= before.last ? "a task occurs twice" : "tasks are missing"));
  }
  before.last = next.last;
  append_share(next.share, number);
}

// If an input is added, removed or resized between two tasks, the shares of all tasks change.
// Unless the boundary between the two tasks is inside a file, only this check notices the change.
void concatenation::append_share(const std::optional<share_bounds>& next, std::size_t number) {
  std::optional<share_bounds>& before = whole_.tasks->share;
  if (!before || !next) {
    before.reset();
    return;
  }
  const auto refuse = [&](const std::string& what) {
    throw config_error(
        fmt::format("part {} {}: its task had other inputs than the earlier tasks, so lines would "
                    "be lost or repeated; pass the same inputs to all tasks, and run the tasks "
                    "with other inputs again with --overwrite",
                    number, what));
  };
  if (before->names_crc32c != next->names_crc32c) refuse("has inputs with other names");
  if (before->end != next->begin) {
    refuse(
        fmt::format("begins at byte {} of input {}, counted from 0, but the earlier parts end at "
                    "byte {} of input {}",
                    next->begin.byte, next->begin.input, before->end.byte, before->end.input));
  }
  before->end = next->end;
}

void concatenation::append_inputs(const dataset_meta& part, std::size_t number) {
  // Suppose that the tasks so far read no input, and that some earlier tasks are not among the
  // parts. Then an earlier task may have read the start of this input.
  const bool may_begin_within = whole_.inputs.empty() && whole_.tasks && whole_.tasks->first != 0;
  const bool joins = !part.inputs.empty() && part.inputs.front().begin != 0 && !may_begin_within;
  part_shift shift;
  if (joins) {
    const std::int64_t lines_before = whole_.inputs.empty() ? 0 : whole_.inputs.back().lines;
    join(part.inputs.front(), number);
    shift.lines_before = lines_before;
  }
  const std::size_t before = whole_.inputs.size() - (joins ? 1 : 0);
  if (part.inputs.size() > std::numeric_limits<std::uint32_t>::max() - before) {
    throw config_error("the parts together have 2^32 or more inputs");
  }
  shift.inputs_before = static_cast<std::uint32_t>(before);
  shifts_.push_back(shift);
  whole_.inputs.insert(whole_.inputs.end(), part.inputs.begin() + (joins ? 1 : 0),
                       part.inputs.end());
}

void concatenation::join(const input_extent& next, std::size_t number) {
  const char* const unit = next.has_rows ? "row" : "byte";
  const std::string where = fmt::format("part {} begins at {} {} of {}", number, unit, next.begin,
                                        command::one_line(next.path));
  if (whole_.inputs.empty()) {
    throw config_error(where + ", but there is no earlier input");
  }
  input_extent& last = whole_.inputs.back();
  // Earlier versions recorded some paths inexactly. If one of the two paths is exact, keep that
  // one.
  const bool next_is_exact = is_path_of(last.path, next.path);
  const bool same_path = next_is_exact || is_path_of(next.path, last.path);
  if (!same_path || last.has_rows != next.has_rows || last.end() != next.begin) {
    throw config_error(fmt::format("{}, but the earlier parts end at {} {} of {}", where,
                                   last.has_rows ? "row" : "byte", last.end(),
                                   command::one_line(last.path)));
  }
  if (next_is_exact) last.path = next.path;
  last.crc32c = crc32c_combine(last.crc32c, next.crc32c, next.text_bytes);
  last.text_bytes = sum(last.text_bytes, next.text_bytes, "bytes of an input");
  last.lines = sum(last.lines, next.lines, "lines of an input");
}

void concatenation::append_counts(const dataset_meta& part, std::size_t number) {
  for (const auto& [name, count] : count_fields) {
    whole_.counts.*count = sum(whole_.counts.*count, part.counts.*count, name);
  }
  for (const auto& [name, count] : rare_count_fields) {
    whole_.counts.*count = sum(whole_.counts.*count, part.counts.*count, name);
  }
  auto& kinds = whole_.counts.bad_records;
  const auto& more = part.counts.bad_records;
  for (std::size_t i = 0; i < std::max(kinds.size(), more.size()); ++i) {
    if (i >= kinds.size() || i >= more.size() || kinds[i].first != more[i].first) {
      throw config_error(
          fmt::format("part {} counts other kinds of bad records than the earlier parts; another "
                      "version of the program may have written it",
                      number));
    }
    kinds[i].second = sum(kinds[i].second, more[i].second, "bad records");
  }
}

// Each part keeps its order of documents, but no option describes the order of the concatenation.
void concatenation::append_order(const dataset_meta& part, std::size_t number) {
  const std::vector<named_option> before = whole_.options;
  const bool of_tasks = part.tasks.has_value();
  if (of_tasks && has(before, budget_end)) {
    throw config_error(fmt::format(
        "part {} follows a task that ended at {}, so it is not part of the run", number, budget));
  }
  whole_.options = only(before, is_of_contents);
  for (const std::string_view name : permutations) {
    const auto mine = std::ranges::find(before, name, &named_option::first);
    const auto theirs = std::ranges::find(part.options, name, &named_option::first);
    if (mine == before.end() && theirs == part.options.end()) continue;
    const bool same = mine != before.end() && theirs != part.options.end() && *mine == *theirs;
    whole_.options.emplace_back(name, same ? mine->second : "mixed");
  }
  if (only(before, is_choice) == only(part.options, is_choice)) {
    const auto same = only(before, is_choice);
    whole_.options.insert(whole_.options.end(), same.begin(), same.end());
  } else {
    for (const std::string_view name : choices) whole_.options.emplace_back(name, "mixed");
  }
  if (of_tasks) {  // those of the run are equal
    for (const auto& kept : {only(before, is_of_run), only(part.options, is_budget_end)}) {
      whole_.options.insert(whole_.options.end(), kept.begin(), kept.end());
    }
  }
  for (const std::string_view name : orders) {
    if (of_tasks && (name == budget || name == budget_end || name == drop_duplicates)) continue;
    if (has(before, name) || has(part.options, name)) whole_.options.emplace_back(name, "mixed");
  }
}

concatenation concatenated(std::span<const dataset_meta> parts) {
  if (parts.empty()) throw config_error("there are no parts to merge");
  concatenation whole(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) whole.append(parts[i], i + 1);
  return whole;
}

}  // namespace

dataset_meta concatenate(std::span<const dataset_meta> parts) {
  return concatenated(parts).meta();
}

std::vector<part_shift> part_shifts(std::span<const dataset_meta> parts) {
  return concatenated(parts).shifts();
}

source_place part_shift::apply(source_place place) const {
  if (place.input == 0) place.line = sum(place.line, lines_before, "lines of an input");
  place.input += inputs_before;
  return place;
}

}  // namespace millrace::formats
