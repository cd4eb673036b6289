// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/formats/detail/utf8.hpp>

/// Reads and writes states as JSON. Each struct lists its fields once, for the reader, the writer
/// and comparisons.
namespace millrace::dataset::detail {

/// Calls `io(name, member)` for each field, in the order of the JSON.
template <class Io, class Source>
requires std::is_same_v<std::remove_const_t<Source>, state_source>
void fields(Io& io, Source& s) {
  io("prefix", s.prefix);
  io("weight", s.weight);
  io("tokens", s.tokens);
  io("sequences", s.sequences);
  io("documents", s.documents);
  io("bin_bytes", s.bin_bytes);
  io("idx_bytes", s.idx_bytes);
  io("root", s.root);
  io("name", s.name);
}

template <class Io, class Segment>
requires std::is_same_v<std::remove_const_t<Segment>, state_segment>
void fields(Io& io, Segment& s) {
  io("first_step", s.first_step);
  io("sources", s.sources);
  io("weights", s.weights);
}

template <class Io, class State>
requires std::is_same_v<std::remove_const_t<State>, run_state>
void fields(Io& io, State& s) {
  io("order", s.order);
  io("seed", s.seed);
  io("seq_len", s.seq_len);
  io("consumed_samples", s.consumed_samples);
  io("global_batch", s.global_batch);
  io("extra_token", s.extra_token);
  io("packing", s.packing);
  io("pad_documents_to", s.pad_documents_to);
  io("last_token_as_label", s.last_token_as_label);
  io("split", s.split);
  io("split_part", s.split_part);
  io("samples", s.samples);
  io("surplus", s.surplus);
  io("weighted", s.weighted);
  io("blend_rounding", s.blend_rounding);
  io("drop_last_partial_sequence", s.drop_last_partial_sequence);
  io("rampup_batch", s.rampup_batch);
  io("sampler", s.sampler);
  io("micro_batch", s.micro_batch);
  io("ranks", s.ranks);
  io("sampled", s.sampled);
  io("data_sharding", s.data_sharding);
  io("tokenizer", s.tokenizer);
  io("data", s.data);
  io("schedule", s.schedule);
  io("edits", s.edits);
}

formats::json_value edit_to_json(const edit& e);

/// `check` refuses an option.
class option_error : public config_error {
 public:
  /// @param place  the option in the JSON, e.g. "data[1].tokens"
  option_error(std::string place, const std::string& what)
      : config_error(what), place_(std::move(place)) {}

  const std::string& place() const noexcept { return place_; }

 private:
  std::string place_;
};

/// The byte of the option at `place` in a parsed state. If the state lacks the option, the byte of
/// what should have it.
std::size_t offset_of(const formats::json_value& state, std::string_view place);

/// Builds a JSON object from fields.
class state_writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    name_ = name;
    object_.push_back({name, json(value)});
  }
  formats::json_object take() { return std::move(object_); }

 private:
  formats::json_value json(bool value) const { return value; }
  formats::json_value json(std::int64_t value) const { return value; }
  formats::json_value json(std::uint64_t value) const { return value; }
  formats::json_value json(double value) const {
    if (!std::isfinite(value)) throw config_error(std::string(name_) + " is not a finite number");
    return value;
  }
  formats::json_value json(const std::string& value) const {
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t size = formats::utf8_sequence_bytes(rest);
      if (size == 0) throw config_error(std::string(name_) + " is not UTF-8: " + value);
      rest.remove_prefix(size);
    }
    return value;
  }
  formats::json_value json(const edit& value) const {
    (void)json(value.why);
    (void)json(value.source);
    return edit_to_json(value);
  }
  template <class T>
  formats::json_value json(const std::vector<T>& values) const {
    formats::json_array array;
    for (const T& value : values) array.push_back(json(value));
    return array;
  }
  template <class T>
  formats::json_value json(const T& value) const {
    state_writer io;
    fields(io, value);
    return io.take();
  }

  const char* name_ = "";
  formats::json_object object_;
};

/// Fills fields from a JSON object. Members may be missing; unknown members are an error.
class state_reader {
 public:
  state_reader(const formats::json_value& value, std::string place) : place_(std::move(place)) {
    object_ = value.as<formats::json_object>();
    if (object_ == nullptr) refuse(place_, value, "an object");
  }

  template <class T>
  void operator()(const char* name, T& value) {
    for (const formats::json_member& member : *object_) {
      if (member.name != name) continue;
      read(member.value, value, place_of(name));
      ++used_;
      return;
    }
  }

  /// Throws if there are unknown members.
  /// @param known  `known(name)` returns true if a member with this name is known
  template <class Known>
  void finish(const Known& known) const {
    if (used_ == object_->size()) return;
    for (const formats::json_member& member : *object_) {
      if (!known(member.name)) {
        throw format_error(
            member.value.offset(),
            "the state has \"" + place_of(member.name) +
                "\", which is an unknown option: a newer version saved it, or it is misspelled");
      }
    }
  }

  /// Describes a value for messages: "a string", "a whole number, -5".
  static std::string text_of(const formats::json_value& value) {
    double scratch = 0;
    const bool is_number = value.as_double(scratch) != nullptr;
    return value.kind() + (is_number ? ", " + formats::write_json(value) : std::string());
  }

  [[noreturn]] static void refuse(const std::string& place, const formats::json_value& found,
                                  const std::string& expected) {
    throw format_error(found.offset(), (place.empty() ? std::string("the state")
                                                      : "\"" + place + "\" of the state") +
                                           " is " + text_of(found) + ", expected " + expected);
  }

 private:
  std::string place_of(std::string_view name) const {
    std::string place = place_.empty() ? place_ : place_ + '.';
    return place += name;
  }

  static void read(const formats::json_value& from, bool& to, const std::string& place) {
    const bool* value = from.as<bool>();
    if (value == nullptr) refuse(place, from, "true or false");
    to = *value;
  }
  static void read(const formats::json_value& from, std::int64_t& to, const std::string& place) {
    const auto* value = from.as<std::int64_t>();
    if (value == nullptr) refuse(place, from, "a whole number below 2^63");
    to = *value;
  }
  static void read(const formats::json_value& from, std::uint64_t& to, const std::string& place) {
    if (const auto* large = from.as<std::uint64_t>()) {
      to = *large;
      return;
    }
    const auto* value = from.as<std::int64_t>();
    if (value == nullptr || *value < 0) refuse(place, from, "a whole number of 0 to 2^64 - 1");
    to = static_cast<std::uint64_t>(*value);
  }
  static void read(const formats::json_value& from, double& to, const std::string& place) {
    double scratch = 0;
    const double* value = from.as_double(scratch);
    if (value == nullptr) refuse(place, from, "a number");
    to = *value;
  }
  static void read(const formats::json_value& from, std::string& to, const std::string& place) {
    const auto* value = from.as<std::string>();
    if (value == nullptr) refuse(place, from, "a string");
    to = *value;
  }
  static void read(const formats::json_value& from, edit& to, const std::string& place);
  template <class T>
  static void read(const formats::json_value& from, std::vector<T>& to, const std::string& place) {
    const auto* array = from.as<formats::json_array>();
    if (array == nullptr) refuse(place, from, "a list");
    to.clear();
    for (std::size_t i = 0; i < array->size(); ++i) {
      read((*array)[i], to.emplace_back(), place + '[' + std::to_string(i) + ']');
    }
  }
  template <class T>
  static void read(const formats::json_value& from, T& to, const std::string& place) {
    state_reader io(from, place);
    fields(io, to);
    io.finish([&](const std::string& name) { return names_of(to, name); });
  }

  template <class T>
  static bool names_of(T& value, std::string_view name) {
    bool found = false;
    const auto io = [&](const char* field, const auto&) { found |= name == field; };
    fields(io, value);
    return found;
  }

  std::string place_;
  const formats::json_object* object_;
  std::size_t used_ = 0;

  friend run_state millrace::dataset::parse_state(std::string_view text);
};

}  // namespace millrace::dataset::detail
