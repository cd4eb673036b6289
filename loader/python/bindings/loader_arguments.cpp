// SPDX-License-Identifier: Apache-2.0
#include "loader_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::python {
namespace {

/// A rank or a number of ranks: an int, or "env" for a variable of the environment.
std::int64_t from_environment(const std::variant<std::int64_t, std::string>& given,
                              const char* argument, const char* variable) {
  if (const auto* number = std::get_if<std::int64_t>(&given)) return *number;
  const auto& word = std::get<std::string>(given);
  if (word != "env") {
    throw config_error(std::string(argument) + " is '" + word +
                       "', expected a number, or 'env' for " + variable + " of the environment");
  }
  const nb::object value = nb::module_::import_("os").attr("environ").attr("get")(variable);
  if (value.is_none()) {
    throw config_error(std::string(argument) + " is 'env', but the environment has no " + variable +
                       "; torchrun sets it");
  }
  const auto text = nb::cast<std::string>(value);
  std::int64_t number = 0;
  const char* const all = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data(), all, number);
  if (problem == std::errc() && end == all) return number;
  throw config_error(std::string(argument) + " is 'env', and " + variable + " is '" + text +
                     "', expected a number");
}

dataset::sampler_type sampler_named(const std::string& name) {
  if (name == "single") return dataset::sampler_type::single;
  if (name == "cyclic") return dataset::sampler_type::cyclic;
  if (name == "full_validation") return dataset::sampler_type::full_validation;
  throw config_error("sampler is '" + name + "', expected 'single', 'cyclic' or 'full_validation'");
}

loader::mask_alignment alignment_named(const std::string& name) {
  if (name == "label") return loader::mask_alignment::label;
  if (name == "input") return loader::mask_alignment::input;
  if (name == "ignored") return loader::mask_alignment::ignored;
  throw config_error("masks is '" + name + "', expected 'label', 'input' or 'ignored'");
}

/// Edits as they are in a state: a list of dicts, e.g. {"skip_samples": [10, 20], "why": "spike"}.
std::vector<dataset::edit> edits_of(const nb::object& edits) {
  if (edits.is_none()) return {};
  nb::dict state;
  state["millrace_state"] = 1;
  state["seq_len"] = 1;
  state["data"] = nb::list();
  state["edits"] = edits;
  state["consumed_samples"] = 0;
  const auto json = nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(state));
  try {
    return dataset::parse_state(json).edits;
  } catch (const format_error& e) {  // its byte is of a text that the caller does not have
    throw config_error(e.problem());
  }
}

/// An argument by its name.
/// @throws nb::type_error  it has another type
template <class T>
T take(const nb::kwargs& given, const char* name) {
  T value{};
  const nb::object from = given[name];
  if (nb::try_cast<T>(from, value)) return value;
  const std::string text = std::string(name) + " is " + nb::repr(from).c_str() +
                           ", which has the wrong type or does not fit into 64 bits";
  throw nb::type_error(text.c_str());
}

/// `max_held`, or 256 batches, or as many as take 1 GiB if those are more.
std::int64_t held_of(const std::optional<std::int64_t>& max_held, std::int64_t bytes_of_batch) {
  if (!max_held)
    return std::clamp<std::int64_t>((1 << 30) / bytes_of_batch, 256, loader::most_held);
  if (*max_held >= 1 && *max_held <= loader::most_held) return *max_held;
  throw config_error("max_held is " + std::to_string(*max_held) + ", expected 1 to " +
                     std::to_string(loader::most_held));
}

id_type id_type_named(const std::string& name) {
  if (name == "int64") return id_type::int64;
  if (name == "int32") return id_type::int32;
  if (name == "source") return id_type::source;
  throw config_error("dtype is '" + name + "', expected 'int64', 'int32' or 'source'");
}

std::optional<dataset::rampup_batch> rampup_of(
    const std::optional<std::vector<std::int64_t>>& numbers) {
  if (!numbers) return std::nullopt;
  if (numbers->size() == 3)
    return dataset::rampup_batch{(*numbers)[0], (*numbers)[1], (*numbers)[2]};
  throw config_error("rampup_batch_size has " + std::to_string(numbers->size()) +
                     " numbers, expected (start, increment, samples)");
}

}  // namespace

loader_arguments arguments_of(const run_handle& run, const nb::kwargs& given) {
  using optional_int = std::optional<std::int64_t>;
  using int_or_env = std::variant<std::int64_t, std::string>;
  loader_arguments result;
  result.fields = field_names_of(take<std::vector<std::string>>(given, "fields"),
                                 take<std::string>(given, "names"));
  result.output = output_named(take<std::string>(given, "output"));
  result.ids = id_type_named(take<std::string>(given, "dtype"));
  result.reuse = take<bool>(given, "reuse");
  loader::loader_options& options = result.options;
  options.batch_size = take<std::int64_t>(given, "micro_batch_size");
  options.rank = from_environment(take<int_or_env>(given, "rank"), "rank", "RANK");
  options.world_size =
      from_environment(take<int_or_env>(given, "world_size"), "world_size", "WORLD_SIZE");
  if (const auto global = take<optional_int>(given, "global_batch_size")) {
    if (*global < 1) {
      throw config_error("global_batch_size is " + std::to_string(*global) +
                         ", expected 1 or more");
    }
    options.global_batch_size = *global;
  }
  options.consumed_samples = take<std::int64_t>(given, "consumed_samples");
  options.sampler = sampler_named(take<std::string>(given, "sampler"));
  options.masks = alignment_named(take<std::string>(given, "masks"));
  options.drop_last = take<bool>(given, "drop_last");
  options.data_sharding = take<bool>(given, "data_sharding");
  options.threads = take<optional_int>(given, "threads").value_or(1);
  const auto look_ahead = take<optional_int>(given, "look_ahead");
  result.has_look_ahead = look_ahead.has_value();
  options.look_ahead = look_ahead.value_or(2);
  const auto max_held = take<optional_int>(given, "max_held");
  result.has_max_held = max_held.has_value();
  // If all fields are wanted, a token takes about 24 bytes.
  const std::int64_t rows = std::clamp<std::int64_t>(options.batch_size, 1, 1 << 24);
  const std::int64_t bytes_of_batch = 24 * rows * run.order->seq_len();
  options.held = held_of(max_held, bytes_of_batch);
  options.edits = edits_of(given["edits"]);
  options.allow_several_tokenizers = take<bool>(given, "allow_several_tokenizers");
  options.context_parallel = take<std::int64_t>(given, "context_parallel");
  options.cp_rank = take<std::int64_t>(given, "cp_rank");
  if (result.fields.hugging_face && result.fields.labels) {
    refuse_cut_labels(*run.order, options.context_parallel);
  }
  options.rampup =
      rampup_of(take<std::optional<std::vector<std::int64_t>>>(given, "rampup_batch_size"));
  options.field_rules = run.rules;
  return result;
}

}  // namespace millrace::python
