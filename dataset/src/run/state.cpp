// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/state.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>

#include "state_json.hpp"

namespace millrace::dataset::detail {

MILLRACE_INLINE formats::json_value edit_to_json(const edit& e) {
  formats::json_object object;
  object.push_back({name_of(e), formats::json_array{e.first, e.last}});
  if (e.kind == edit_kind::replay) {
    object.push_back({e.unit == edit_unit::steps ? "at_step" : "at_sample", e.at});
  }
  if (e.kind == edit_kind::block) object.push_back({"source", e.source});
  if (e.since != 0) object.push_back({"since", e.since});
  object.push_back({"why", e.why});
  return object;
}

MILLRACE_INLINE std::size_t offset_of(const formats::json_value& state, std::string_view place) {
  const formats::json_value* at = &state;
  while (!place.empty()) {
    const formats::json_value* next = nullptr;
    if (place.front() == '[') {
      std::size_t index = 0;
      std::from_chars(place.data() + 1, place.data() + place.size(), index);
      const auto* list = at->as<formats::json_array>();
      if (list != nullptr && index < list->size()) next = &(*list)[index];
      place.remove_prefix(place.find(']') + 1);
    } else {
      const std::string_view name = place.substr(0, place.find_first_of(".["));
      next = at->find(name);
      place.remove_prefix(name.size());
    }
    if (next == nullptr) break;
    at = next;
    if (place.starts_with('.')) place.remove_prefix(1);
  }
  return at->offset();
}

MILLRACE_INLINE void state_reader::read(const formats::json_value& from, edit& to,
                                        const std::string& place) {
  state_reader io(from, place);
  std::vector<std::int64_t> range;
  for (const edit_kind kind : {edit_kind::skip, edit_kind::replay, edit_kind::block}) {
    for (const edit_unit unit : {edit_unit::samples, edit_unit::steps, edit_unit::documents}) {
      const std::size_t before = io.used_;
      to.kind = kind;
      to.unit = unit;
      io(name_of(to).c_str(), range);
      if (io.used_ == before) continue;
      if (range.size() != 2) {
        throw format_error(from.find(name_of(to))->offset(),
                           "\"" + place + '.' + name_of(to) + "\" of the state is a list of " +
                               std::to_string(range.size()) + ", expected two numbers");
      }
      to.first = range[0];
      to.last = range[1];
      if (kind == edit_kind::replay) io(unit == edit_unit::steps ? "at_step" : "at_sample", to.at);
      if (kind == edit_kind::block) io("source", to.source);
      io("since", to.since);
      io("why", to.why);
      const std::string own = name_of(to);
      io.finish([&](const std::string& name) {
        return name == own || name == "since" || name == "why" ||
               (kind == edit_kind::block && name == "source") ||
               (kind == edit_kind::replay &&
                name == (unit == edit_unit::steps ? "at_step" : "at_sample"));
      });
      return;
    }
  }
  refuse(place, from, "skip_, replay_ or block_ with samples, steps or documents");
}

}  // namespace millrace::dataset::detail

namespace millrace::dataset {

MILLRACE_INLINE std::string write_state(const run_state& state) {
  detail::state_writer io;
  io("millrace_state", std::int64_t{1});
  detail::fields(io, state);
  return formats::write_json(io.take());
}

MILLRACE_INLINE run_state parse_state(std::string_view text) {
  const formats::json_value whole = formats::parse_json(text);
  const formats::json_value* version = whole.find("millrace_state");
  if (version == nullptr) {
    throw format_error(whole.offset(),
                       "this is not a run state: it has no \"millrace_state\", expected 1");
  }
  if (*version != formats::json_value(std::int64_t{1})) {
    throw format_error(version->offset(), "the state is of version " +
                                              formats::write_json(*version) +
                                              ", expected 1: a newer release saved it");
  }
  run_state state;
  detail::state_reader io(whole, "");
  std::int64_t ignored = 0;
  io("millrace_state", ignored);
  detail::fields(io, state);
  io.finish([&](const std::string& name) {
    return name == "millrace_state" || detail::state_reader::names_of(state, name);
  });
  try {
    check(state);
  } catch (const detail::option_error& e) {
    throw format_error(detail::offset_of(whole, e.place()), e.what());
  }
  return state;
}

}  // namespace millrace::dataset

namespace millrace::dataset::detail {

[[noreturn]] MILLRACE_INLINE void refuse_option(const std::string& place, const std::string& found,
                                                const std::string& expected) {
  throw option_error(place, place + " of the state is " + found + ", expected " + expected);
}

MILLRACE_INLINE void check_word(const char* place, const std::string& found,
                                const std::vector<std::string_view>& words) {
  if (std::ranges::find(words, found) != words.end()) return;
  std::string expected;
  for (const std::string_view word : words) {
    if (!expected.empty()) expected += word == words.back() ? " or " : ", ";
    expected += word;
  }
  refuse_option(place, '"' + found + '"', expected);
}

MILLRACE_INLINE void check_count(const std::string& place, std::int64_t found,
                                 std::int64_t least = 0) {
  if (least <= found && found <= most_positions) return;
  refuse_option(place, std::to_string(found), std::to_string(least) + " to 2^62");
}

MILLRACE_INLINE void check_weight(const std::string& place, double found, bool may_be_zero) {
  if (std::isfinite(found) && (found > 0 || (may_be_zero && found == 0))) return;
  refuse_option(place, std::to_string(found), may_be_zero ? "0 or more" : "a number above zero");
}

MILLRACE_INLINE void check_source(const std::string& place, const state_source& source) {
  check_weight(place + "weight", source.weight, true);
  check_count(place + "tokens", source.tokens);
  check_count(place + "sequences", source.sequences);
  check_count(place + "documents", source.documents);
  check_count(place + "bin_bytes", source.bin_bytes);
  check_count(place + "idx_bytes", source.idx_bytes);
}

MILLRACE_INLINE void check_segment(const std::string& place, const state_segment& segment,
                                   std::size_t sources) {
  if (segment.first_step < 0 || segment.first_step > most_steps) {
    refuse_option(place + "first_step", std::to_string(segment.first_step), "0 to 2^40");
  }
  if (segment.sources.size() != segment.weights.size()) {
    throw option_error(place + "sources",
                       place + "sources of the state has " +
                           std::to_string(segment.sources.size()) + " entries, but weights has " +
                           std::to_string(segment.weights.size()) + ", expected one for each");
  }
  for (const std::int64_t source : segment.sources) {
    if (0 <= source && source < static_cast<std::int64_t>(sources)) continue;
    throw option_error(place + "sources", place + "sources of the state names " +
                                              std::to_string(source) + ", but data has " +
                                              std::to_string(sources) + ", counted from 0");
  }
  for (const double weight : segment.weights) check_weight(place + "weights", weight, false);
}

}  // namespace millrace::dataset::detail

namespace millrace::dataset {

MILLRACE_INLINE void check(const run_state& state) {
  detail::check_word("order", state.order, {"instant", "megatron", "stored"});
  std::vector<std::string_view> packings = {"none"};
  packings.insert(packings.end(), packing_algorithm_names.begin(), packing_algorithm_names.end());
  detail::check_word("packing", state.packing, packings);
  detail::check_word("split_part", state.split_part, {"train", "valid", "test"});
  detail::check_word("blend_rounding", state.blend_rounding, {"twice", "fused"});
  detail::check_word("sampler", state.sampler, {"single", "cyclic", "full_validation", "hybrid"});
  // Here and below, 0 means that the option is missing.
  detail::check_count("seq_len", state.seq_len);
  detail::check_count("global_batch", state.global_batch);
  detail::check_count("micro_batch", state.micro_batch);
  detail::check_count("ranks", state.ranks);
  detail::check_count("sampled", state.sampled);
  detail::check_count("pad_documents_to", state.pad_documents_to, 1);
  detail::check_count("consumed_samples", state.consumed_samples);
  if (!std::isfinite(state.surplus) || state.surplus < 0) {
    detail::refuse_option("surplus", std::to_string(state.surplus), "0 or more");
  }
  if (state.samples.size() > 3) {
    detail::refuse_option("samples", "a list of " + std::to_string(state.samples.size()),
                          "those of train, valid and test");
  }
  for (const std::int64_t samples : state.samples) detail::check_count("samples", samples, -1);
  if (!state.rampup_batch.empty() && state.rampup_batch.size() != 3) {
    detail::refuse_option("rampup_batch", "a list of " + std::to_string(state.rampup_batch.size()),
                          "start, increment and samples, or none");
  }
  for (const std::int64_t number : state.rampup_batch) detail::check_count("rampup_batch", number);
  for (std::size_t i = 0; i < state.data.size(); ++i) {
    detail::check_source("data[" + std::to_string(i) + "].", state.data[i]);
  }
  for (std::size_t i = 0; i < state.schedule.size(); ++i) {
    detail::check_segment("schedule[" + std::to_string(i) + "].", state.schedule[i],
                          state.data.size());
  }
  for (std::size_t i = 0; i < state.edits.size(); ++i) {
    try {
      check(state.edits[i], i);
    } catch (const config_error& e) {
      throw detail::option_error("edits[" + std::to_string(i) + "]", e.what());
    }
  }
}

}  // namespace millrace::dataset
