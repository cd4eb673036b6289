// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/error.hpp>

#include "state_json.hpp"

namespace millrace::dataset {

namespace detail {

/// A value as the JSON of a state shows it.
template <class T>
std::string text_of(const T& value) {
  state_writer io;
  io("value", value);
  return formats::write_json(io.take().front().value);
}

MILLRACE_INLINE bool contains(std::span<const std::string> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

[[noreturn]] MILLRACE_INLINE void throw_differs(const run_state& saved, std::string_view option,
                                                const std::string& place, const std::string& then,
                                                const std::string& now, const std::string& why) {
  throw config_error(place + " is " + now + ", but was " + then + " when the state was saved, at " +
                     "consumed_samples " + std::to_string(saved.consumed_samples) + ": " + why +
                     "; restore the old value, or allow \"" + std::string(option) + "\" to change");
}

inline constexpr const char* other_samples = "other samples would be served";

/// Number of steps that the saved run has begun; nullopt if it cannot be determined.
MILLRACE_INLINE std::optional<std::int64_t> steps_done(const run_state& saved,
                                                       const resume_terms& terms) {
  if (terms.steps_done) return terms.steps_done;
  if (!saved.rampup_batch.empty() || saved.global_batch < 1) return std::nullopt;
  std::int64_t reached = saved.consumed_samples;
  if (!saved.edits.empty()) {  // segments refer to positions, including skipped positions
    if (terms.saved_stream == nullptr) return std::nullopt;
    reached = terms.saved_stream->reached(reached);
  }
  return reached / saved.global_batch + (reached % saved.global_batch == 0 ? 0 : 1);
}

/// Returns the reason why a segment must not change.
MILLRACE_INLINE std::string steps_text(const run_state& saved, std::optional<std::int64_t> done) {
  if (done) return "the run has served samples of " + std::to_string(*done) + " steps";
  const bool edits = saved.rampup_batch.empty() && saved.global_batch >= 1;
  return std::string("the number of completed steps is unknown: pass the terms ") +
         (edits ? "saved_stream, because edits shift the samples, or steps_done" : "steps_done");
}

/// The name that determines the shuffle of a source in the `instant` order.
MILLRACE_INLINE std::string key_name(const state_source& source) {
  return source.name.empty() ? std::filesystem::path(source.prefix).filename().string()
                             : source.name;
}

MILLRACE_INLINE void compare_source(const run_state& saved, std::size_t i, const state_source& then,
                                    const state_source& now, bool weights_count) {
  const std::string place = "data[" + std::to_string(i) + "] (" + now.prefix + "): its ";
  const auto same = [&](const char* name, const auto& a, const auto& b) {
    if (a == b) return;
    throw_differs(saved, "data", place + name, text_of(a), text_of(b), "it is another dataset");
  };
  same("tokens", then.tokens, now.tokens);
  same("sequences", then.sequences, now.sequences);
  same("documents", then.documents, now.documents);
  same("bin_bytes", then.bin_bytes, now.bin_bytes);
  same("idx_bytes", then.idx_bytes, now.idx_bytes);
  if (!then.root.empty() && !now.root.empty()) same("root", then.root, now.root);
  if (saved.order == "instant" && key_name(then) != key_name(now)) {
    throw_differs(saved, "data", place + "name", text_of(key_name(then)), text_of(key_name(now)),
                  "the order depends on it, so other samples would be served");
  }
  if (weights_count && then.weight != now.weight) {
    throw_differs(saved, "data", place + "weight", text_of(then.weight), text_of(now.weight),
                  other_samples);
  }
}

MILLRACE_INLINE void compare_data(const run_state& saved, const run_state& now) {
  const bool scheduled = !now.schedule.empty() && !saved.schedule.empty();
  const bool by_length = saved.order == "megatron" && !saved.weighted && !now.weighted;
  const std::size_t common = std::min(saved.data.size(), now.data.size());
  for (std::size_t i = 0; i < common; ++i) {
    compare_source(saved, i, saved.data[i], now.data[i], !scheduled && !by_length);
  }
  // A run with a schedule may append datasets, because later segments may include them in the
  // blend.
  if (saved.data.size() == now.data.size()) return;
  if (scheduled && saved.data.size() < now.data.size()) return;
  throw_differs(saved, "data", "the number of datasets", text_of(std::int64_t(saved.data.size())),
                text_of(std::int64_t(now.data.size())), other_samples);
}

MILLRACE_INLINE void compare_schedule(const run_state& saved, const run_state& now,
                                      const resume_terms& terms) {
  const auto& then = saved.schedule;
  const auto& to = now.schedule;
  if (then == to) return;
  const std::size_t all = std::max(then.size(), to.size());
  for (std::size_t i = 0; i < all; ++i) {
    if (i < then.size() && i < to.size() && then[i] == to[i]) continue;
    // At the first difference, neither the old nor the new segment may have begun.
    const auto done = steps_done(saved, terms);
    const auto open = [&](const std::vector<state_segment>& schedule) {
      return i >= schedule.size() || (i > 0 && done && schedule[i].first_step >= *done);
    };
    if (i > 0 && open(then) && open(to)) return;
    const std::string none = "none";
    throw_differs(saved, "schedule", "schedule[" + std::to_string(i) + "]",
                  i < then.size() ? text_of(then[i]) : none, i < to.size() ? text_of(to[i]) : none,
                  steps_text(saved, done));
  }
}

MILLRACE_INLINE void compare_edits(const run_state& saved, const run_state& now,
                                   const resume_terms& terms) {
  if (saved.edits == now.edits) return;
  for (std::size_t i = 0; i < saved.edits.size(); ++i) {
    if (i < now.edits.size() && saved.edits[i] == now.edits[i]) continue;
    throw_differs(saved, "edits", "edits[" + std::to_string(i) + "]", text_of(saved.edits[i]),
                  i < now.edits.size() ? text_of(now.edits[i]) : "none", other_samples);
  }
  if (terms.saved_stream != nullptr && terms.new_stream != nullptr) {
    if (terms.saved_stream->same_until(*terms.new_stream, saved.consumed_samples)) return;
    throw_differs(
        saved, "edits", "the list of edits", text_of(saved.edits), text_of(now.edits),
        "it changes which samples had been served by then; a new edit may set \"since\": " +
            std::to_string(saved.consumed_samples));
  }
  for (std::size_t i = saved.edits.size(); i < now.edits.size(); ++i) {
    if (now.edits[i].since >= saved.consumed_samples) continue;
    throw_differs(
        saved, "edits", "edits[" + std::to_string(i) + "]", "none", text_of(now.edits[i]),
        "a new edit must set \"since\": " + std::to_string(saved.consumed_samples) + " or more");
  }
}

MILLRACE_INLINE void compare_cyclic(const run_state& saved, const run_state& now) {
  const bool same_layout = saved.micro_batch == now.micro_batch && saved.ranks == now.ranks;
  if (same_layout) return;
  // Samples per epoch. An epoch consists of whole rounds, each with one micro-batch per rank.
  const auto active = [](const run_state& s) {
    const std::int64_t round = s.micro_batch * s.ranks;
    return round < 1 ? 0 : s.sampled / round * round;
  };
  for (const run_state* s : {&saved, &now}) {
    const std::int64_t epoch = active(*s);
    if (epoch > 0 && saved.consumed_samples % epoch == 0) continue;
    const bool ranks = saved.ranks != now.ranks;
    throw_differs(saved, ranks ? "ranks" : "micro_batch",
                  ranks ? "ranks of the cyclic sampler" : "micro_batch of the cyclic sampler",
                  text_of(ranks ? saved.ranks : saved.micro_batch),
                  text_of(ranks ? now.ranks : now.micro_batch),
                  "they determine its shuffles, so they may change only between epochs, of " +
                      std::to_string(epoch) + " samples with " + std::to_string(s->ranks) +
                      " ranks of " + std::to_string(s->micro_batch) + ", and of both");
  }
}

/// Compares all options by iterating over the list of fields.
class state_comparison {
 public:
  state_comparison(const run_state& saved, const run_state& now, const resume_terms& terms)
      : saved_(saved), now_(now), terms_(terms) {}

  void run() {
    require_known_names();
    const auto visit = [&](const char* name, const auto& then) { compare(name, then); };
    fields(visit, saved_);
  }

 private:
  // A misspelt name would allow nothing, which its author would not notice before a resume fails.
  void require_known_names() const {
    std::vector<std::string> known;
    const auto visit = [&](const char* name, const auto&) { known.emplace_back(name); };
    fields(visit, saved_);
    for (const std::string& name : terms_.allow) {
      if (contains(known, name)) continue;
      std::string why = "\"" + name + "\" is allowed to change, but a state has no such option; ";
      const char* between = "expected one of ";
      for (const std::string& each : known) why.append(std::exchange(between, ", ")).append(each);
      throw config_error(why);
    }
  }

  template <class T>
  void compare(std::string_view name, const T& then) {
    const bool cyclic = saved_.sampler == "cyclic" && now_.sampler == "cyclic";
    if (name == "micro_batch" || name == "ranks") {
      // The micro-batch size and the number of ranks together determine the epoch, so compare both
      // at once. Leave out an option that is in `allow`.
      if (!cyclic || name == "ranks") return;
      run_state asked = now_;
      if (contains(terms_.allow, "micro_batch")) asked.micro_batch = saved_.micro_batch;
      if (contains(terms_.allow, "ranks")) asked.ranks = saved_.ranks;
      return compare_cyclic(saved_, asked);
    }
    if (contains(terms_.allow, name) || name == "consumed_samples") return;
    if (name == "data") return compare_data(saved_, now_);
    if (name == "schedule") return compare_schedule(saved_, now_, terms_);
    if (name == "edits") return compare_edits(saved_, now_, terms_);
    const bool megatron = saved_.order == "megatron";
    if ((name == "samples" || name == "weighted") && !megatron) return;
    const bool blend = megatron && (saved_.weighted || saved_.data.size() > 1);
    if (name == "blend_rounding" && !blend) return;
    if ((name == "data_sharding" || name == "sampled") && !cyclic) return;
    const T* to = nullptr;
    const auto find = [&]<class U>(const char* field, const U& value) {
      if constexpr (std::is_same_v<T, U>) {
        if (name == field) to = &value;
      }
    };
    fields(find, now_);
    if (to == nullptr || *to == then) return;
    throw_differs(saved_, name, std::string(name), text_of(then), text_of(*to), other_samples);
  }

  const run_state& saved_;
  const run_state& now_;
  const resume_terms& terms_;
};

/// Adds the fields in which two values differ. A null pointer is a missing value.
MILLRACE_INLINE void add_differences(const std::string& field, const formats::json_value* a,
                                     const formats::json_value* b,
                                     std::vector<state_difference>& all) {
  if (a != nullptr && b != nullptr) {
    const auto* object_a = a->as<formats::json_object>();
    const auto* object_b = b->as<formats::json_object>();
    if (object_a != nullptr && object_b != nullptr) {
      const auto find = [](const formats::json_object& in, const std::string& name) {
        const auto found = std::ranges::find(in, name, &formats::json_member::name);
        return found == in.end() ? nullptr : &found->value;
      };
      const auto name_of = [&](const std::string& name) {
        return field.empty() ? name : field + '.' + name;
      };
      for (const auto& [name, value] : *object_a) {
        add_differences(name_of(name), &value, find(*object_b, name), all);
      }
      for (const auto& [name, value] : *object_b) {
        if (find(*object_a, name) == nullptr) add_differences(name_of(name), nullptr, &value, all);
      }
      return;
    }
    const auto* list_a = a->as<formats::json_array>();
    const auto* list_b = b->as<formats::json_array>();
    // Lists of numbers, e.g. of the ramp-up, are values.
    const auto has_objects = [](const formats::json_array* list) {
      return list != nullptr && !list->empty() &&
             list->front().as<formats::json_object>() != nullptr;
    };
    if (list_a != nullptr && list_b != nullptr && (has_objects(list_a) || has_objects(list_b))) {
      for (std::size_t i = 0; i < std::max(list_a->size(), list_b->size()); ++i) {
        add_differences(field + '[' + std::to_string(i) + ']',
                        i < list_a->size() ? &(*list_a)[i] : nullptr,
                        i < list_b->size() ? &(*list_b)[i] : nullptr, all);
      }
      return;
    }
  }
  const auto text = [](const formats::json_value* value) {
    return value == nullptr ? std::string() : formats::write_json(*value);
  };
  if (auto in_a = text(a), in_b = text(b); in_a != in_b) {
    all.push_back({field, std::move(in_a), std::move(in_b)});
  }
}

}  // namespace detail

MILLRACE_INLINE std::vector<state_difference> diff_states(const run_state& a, const run_state& b) {
  const auto json_of = [](const run_state& state) -> formats::json_value {
    detail::state_writer io;
    detail::fields(io, state);
    return io.take();
  };
  std::vector<state_difference> all;
  const formats::json_value in_a = json_of(a);
  const formats::json_value in_b = json_of(b);
  detail::add_differences("", &in_a, &in_b, all);
  return all;
}

MILLRACE_INLINE void require_same(const run_state& saved, const run_state& now,
                                  const resume_terms& terms) {
  detail::state_comparison(saved, now, terms).run();
}

}  // namespace millrace::dataset
