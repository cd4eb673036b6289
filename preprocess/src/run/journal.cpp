// SPDX-License-Identifier: Apache-2.0
#include "run/journal.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <type_traits>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

// Increase this number when the contents of a record change.
constexpr std::uint32_t journal_version = 8;

static_assert(std::is_trivially_copyable_v<record_counts>);
static_assert(std::is_trivially_copyable_v<input_total>);
static_assert(std::is_trivially_copyable_v<text_place>);

/// Writes fields to a payload.
class payload_writer {
 public:
  explicit payload_writer(char kind) { put(kind); }

  template <class T>
  void put(const T& value) requires std::is_trivially_copyable_v<T> {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(const std::string& text) {
    put(text.size());
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void put_all(std::span<T> values) {
    put(values.size());
    for (const auto& value : values) put(value);
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads fields from a payload. The checksum of the record was correct, so some version of this
/// program wrote the payload.
class payload_reader {
 public:
  explicit payload_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() requires std::is_trivially_copyable_v<T> {
    T value;
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string take_text() {
    const auto text = next(take<std::size_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  template <class T>
  std::vector<T> take_all() {
    const auto count = take<std::size_t>();
    if (count > bytes_.size() / sizeof(T)) fail();
    std::vector<T> values(count);
    for (T& value : values) value = take<T>();
    return values;
  }

 private:
  std::span<const std::byte> next(std::size_t size) {
    if (size > bytes_.size()) fail();
    const auto part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  [[noreturn]] static void fail() { throw format_error(0, "a record is too short"); }

  std::span<const std::byte> bytes_;
};

run_identity take_identity(payload_reader& reader) {
  run_identity identity;
  for (auto count = reader.take<std::size_t>(); count > 0; --count) {
    auto name = reader.take_text();
    identity.emplace_back(std::move(name), reader.take_text());
  }
  return identity;
}

std::filesystem::path journal_path(std::filesystem::path prefix) {
  prefix += ".journal";
  return prefix;
}

void put_outputs(payload_writer& writer, const output_states& outputs) {
  writer.put_all(std::span(outputs.wholes));
  writer.put_all(std::span(outputs.parts));
}

output_states take_outputs(payload_reader& reader) {
  output_states outputs;
  outputs.wholes = reader.take_all<dataset_state>();
  outputs.parts = reader.take_all<dataset_state>();
  return outputs;
}

}  // namespace

std::optional<std::string> difference(const run_identity& was, const run_identity& is) {
  for (std::size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    if (i < was.size() && i < is.size() && was[i] == is[i]) continue;
    const auto value = [](const run_identity& of, const std::string& name) -> std::string {
      const auto at = std::ranges::find(of, name, &run_identity::value_type::first);
      return at == of.end() ? "none" : at->second;
    };
    const bool gone = i < was.size() && value(is, was[i].first) == "none";
    const std::string& name = i < is.size() && !gone ? is[i].first : was[i].first;
    if (i < was.size() && i < is.size() && was[i].first == is[i].first) {
      return fmt::format("{}: {}, then {}", name, was[i].second, is[i].second);
    }
    return fmt::format("{}: {}, then {}", name, value(was, name), value(is, name));
  }
  return std::nullopt;
}

journal::journal(const std::filesystem::path& output_prefix, start how)
    : file_(journal_path(output_prefix)) {
  if (how == start::afresh) return;
  try {
    for (const auto& payload : file_.read()) take(payload);
  } catch (const format_error& e) {
    throw config_error(fmt::format(
        "{} was written by another version of this program; pass --overwrite to start again",
        path().string()));
  }
}

std::optional<run_identity> journal::identity_in(const std::filesystem::path& path) {
  try {
    const io::unique_fd fd = io::open_read_only(path);
    std::uint64_t size = 0;
    const auto records = whole_records(fd, path, size);
    if (records.empty()) return std::nullopt;
    payload_reader reader(records.front());
    if (reader.take<char>() != 'i' || reader.take<std::uint32_t>() != journal_version) {
      return std::nullopt;
    }
    return take_identity(reader);
  } catch (const error&) {
    return std::nullopt;
  }
}

void journal::take(std::span<const std::byte> payload) {
  payload_reader reader(payload);
  const char kind = reader.take<char>();
  if (kind == 'i') {
    if (reader.take<std::uint32_t>() != journal_version) throw format_error(0, "another version");
    identity_ = take_identity(reader);
    stamps_ = reader.take_all<input_stamp>();
  } else if (kind == 't') {
    stamps_ = reader.take_all<input_stamp>();
  } else if (kind == 's') {
    if (!state_) state_.emplace();
    state_->next = reader.take<text_place>();
    state_->inputs.resize(reader.take<std::size_t>());  // their totals are in earlier records
    for (const auto& total : reader.take_all<input_total>()) state_->inputs.push_back(total);
    inputs_written_ = std::max<std::size_t>(state_->inputs.size(), 1) - 1;
    state_->counts = reader.take<record_counts>();
    state_->outputs = take_outputs(reader);
    state_->start.counts = reader.take<record_counts>();
    state_->start.outputs = take_outputs(reader);
    state_->damaged = reader.take<bool>();
    state_->all_read = reader.take<bool>();
    state_->stopped_before.reset();
    if (reader.take<bool>()) state_->stopped_before = reader.take<text_place>();
  } else if (kind == 'f') {
    finished_ = reader.take_all<sidecar_set>();
  } else {
    throw format_error(0, "an unknown kind of record");
  }
}

void journal::clear() {
  file_.clear();
  identity_.reset();
  stamps_.clear();
  state_.reset();
  finished_.reset();
  inputs_written_ = 0;
}

void journal::begin(const run_identity& identity, const std::vector<input_stamp>& stamps) {
  payload_writer writer('i');
  writer.put(journal_version);
  writer.put(identity.size());
  for (const auto& [name, value] : identity) {
    writer.put(name);
    writer.put(value);
  }
  writer.put_all(std::span(stamps));
  file_.append(writer.bytes());
  // Make the file names durable. Otherwise, a power loss could remove files that a state in the
  // journal describes.
  file_.sync_names();
  identity_ = identity;
  stamps_ = stamps;
}

void journal::renew_stamps(const std::vector<input_stamp>& stamps) {
  assert(state_);
  payload_writer writer('t');
  writer.put_all(std::span(stamps));
  file_.append(writer.bytes());
  stamps_ = stamps;
}

void journal::write(const run_progress& state) {
  payload_writer writer('s');
  writer.put(state.next);
  // Write only the totals that may have changed. The totals of completed inputs are already in
  // earlier records.
  writer.put(inputs_written_);
  writer.put_all(std::span(state.inputs).subspan(inputs_written_));
  writer.put(state.counts);
  put_outputs(writer, state.outputs);
  writer.put(state.start.counts);
  put_outputs(writer, state.start.outputs);
  writer.put(state.damaged);
  writer.put(state.all_read);
  writer.put(state.stopped_before.has_value());
  if (state.stopped_before) writer.put(*state.stopped_before);
  file_.append(writer.bytes());
  inputs_written_ = std::max<std::size_t>(state.inputs.size(), 1) - 1;
}

void journal::go_back(std::size_t first) {
  if (state_->next.input == first) {  // no other input was read, so start the run again
    state_.reset();
    return;
  }
  run_progress before = *state_;
  before.next.offset = 0;
  before.inputs.back() = {};
  before.counts = before.start.counts;
  before.outputs = before.start.outputs;
  before.damaged = before.all_read = false;
  before.stopped_before.reset();
  write(before);  // the output files are longer now, but resuming truncates them
  state_ = std::move(before);
}

void journal::write_finished(const std::vector<sidecar_set>& sidecars) {
  payload_writer writer('f');
  writer.put_all(std::span(sidecars));
  file_.sync_names();  // P.meta was created after begin()
  file_.append(writer.bytes());
}

void journal::remove() {
  fault_point("journal");
  file_.remove();
}

void journal::discard() noexcept {
  try {
    remove();
  } catch (const std::exception&) {
  }
}

void journal::remove_finished() {
  try {
    remove();
  } catch (const error& e) {
    throw error(fmt::format(
        "{}; the output is complete; run again with --resume to remove the journal", e.what()));
  }
}

}  // namespace millrace::preprocess
