// SPDX-License-Identifier: Apache-2.0
#include "merge/duplicate_finder.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/free_memory.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

// A chunk has no rest for records of 40 bytes, nor for duplicates of 16.
constexpr std::uint64_t chunk_unit = 80;
constexpr std::uint64_t least_chunk_bytes = 50 * chunk_unit;
constexpr std::uint64_t most_chunk_bytes = 3200 * chunk_unit;
constexpr std::uint64_t least_slots = 256;
constexpr std::uint64_t slot_bytes = 24;
// The parts of the memory: a quarter for the chunks of all buckets, the rest for the table.
constexpr double table_part = 0.75;
constexpr double usual_load = 0.7;  // part of a table's slots that is used
constexpr double most_load = 0.9;

// Maps a hash evenly to the numbers below `count`.
std::uint64_t scaled(std::uint64_t hash, std::uint64_t count) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<wide>(hash) * count) >> 64);
}

template <class T>
void read_all(const io::atomic_file& file, std::uint64_t offset, std::span<T> out) {
  const auto bytes = std::as_writable_bytes(out);
  const std::size_t n = io::pread_some(file.fd(), bytes, offset, file.partial_path());
  if (n != bytes.size()) throw io_error(file.partial_path(), "read (it became shorter)", ESTALE);
}

}  // namespace

/// A hash table of the documents of one bucket, without the duplicates. A slot stores 40 bits of
/// the key. More of its bits decide the bucket and the slot, so documents of different keys are
/// hardly ever compared.
class duplicate_finder::key_table {
 public:
  /// Empties the table, and gives it room for about `keys` keys, but at most `most_slots` slots.
  void reset(std::uint64_t keys, std::uint64_t most_slots) {
    const auto wanted = static_cast<std::uint64_t>(static_cast<double>(keys) / usual_load) + 1;
    const std::uint64_t size = std::max(std::min(wanted, most_slots), least_slots);
    levels_.resize(1);
    levels_.front().used = 0;
    auto& slots = levels_.front().slots;
    if (size > slots.capacity()) formats::free_memory(slots);  // never have two tables
    slots.assign(size, {});
  }

  /// Returns the document with this key that `are_equal` accepts. If there is none, adds `added`
  /// and returns it.
  std::uint64_t find_or_add(const record& added, const comparison& are_equal) {
    const std::uint64_t bytes = std::min(added.place.bytes, content_place::unstored_bytes);
    const std::uint64_t tag = added.key.high << size_bits | bytes;
    slot* free = nullptr;
    for (level& each : levels_) {
      const std::uint64_t size = each.slots.size();
      std::uint64_t i = scaled(added.key.low, size);
      for (; each.slots[i].document != none; i = i + 1 == size ? 0 : i + 1) {
        const slot& at = each.slots[i];
        if (at.tag == tag && are_equal({at.document, at.begin, bytes}, added.place)) {
          return at.document;
        }
      }
      free = &each.slots[i];
    }
    *free = {tag, added.place.document, added.place.begin};
    level& last = levels_.back();
    if (++last.used >
        static_cast<std::uint64_t>(most_load * static_cast<double>(last.slots.size()))) {
      // Keys are spread evenly over the buckets, so this hardly happens.
      levels_.push_back({std::vector<slot>(last.slots.size()), 0});
    }
    return added.place.document;
  }

 private:
  static constexpr int size_bits = 24;
  static_assert(content_place::unstored_bytes == (1 << size_bits) - 1);
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct slot {
    std::uint64_t tag = 0;  // bits of the key, then the size
    std::uint64_t document = none;
    std::uint64_t begin = 0;
  };
  static_assert(sizeof(slot) == slot_bytes);
  /// A hash table with linear probing. When one is full, another takes what comes next.
  struct level {
    std::vector<slot> slots;
    std::uint64_t used = 0;
  };

  std::vector<level> levels_;
};

duplicate_finder::duplicate_finder(const std::filesystem::path& spill, std::uint64_t documents,
                                   std::uint64_t memory_bytes, stop_flag stop)
    : file_(spill), stop_(std::move(stop)), documents_(documents), memory_bytes_(memory_bytes) {
  const double table_bytes = table_part * static_cast<double>(memory_bytes);
  const auto keys_at_a_time = static_cast<std::uint64_t>(
      std::max(table_bytes / slot_bytes, static_cast<double>(least_slots)) * usual_load);
  buckets_.resize(documents / keys_at_a_time + 1);
  const std::uint64_t room = memory_bytes / 4 / buckets_.size() / chunk_unit * chunk_unit;
  chunk_bytes_ = std::clamp(room, least_chunk_bytes, most_chunk_bytes);
}

room_claim duplicate_finder::claim() noexcept {
  return {&file_, documents_ * sizeof(record) + buckets_.size() * chunk_bytes_};
}

void duplicate_finder::add(const content_key& key, std::uint64_t begin, std::uint64_t bytes) {
  bucket& to = buckets_[scaled(key.high, buckets_.size())];
  to.pending.push_back({key, {added_++, begin, bytes}});
  ++to.records;
  if (to.pending.size() == chunk_records()) flush(to);
}

void duplicate_finder::flush(bucket& to) {
  stop_.check();
  to.chunks.push_back(chunk_count_++);
  io::pwrite_all(file_.fd(), std::as_bytes(std::span(to.pending)),
                 offset_of(to, to.chunks.size() - 1), file_.partial_path());
  to.pending.clear();
}

void duplicate_finder::find(const comparison& are_equal) {
  assert(added_ == documents_);
  found_.resize(documents_ / 64 + 1);
  for (bucket& each : buckets_) {
    if (!each.pending.empty()) flush(each);
    formats::free_memory(each.pending);
  }
  {
    key_table table;
    for (bucket& each : buckets_) find_in(each, table, are_equal);
  }
  number();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].duplicates == 0) continue;
    load(buckets_[i]);
    heads_.emplace(buckets_[i].loaded.front().document, i);
  }
}

// Reads the records chunk by chunk, and writes the duplicates to chunks that were read before: a
// duplicate is smaller than a record.
void duplicate_finder::find_in(bucket& in, key_table& table, const comparison& are_equal) {
  table.reset(
      in.records,
      static_cast<std::uint64_t>(table_part * static_cast<double>(memory_bytes_)) / slot_bytes);
  std::vector<record> records;
  std::vector<duplicate> found;
  std::uint64_t written = 0;  // chunks of duplicates
  const auto write = [&] {
    io::pwrite_all(file_.fd(), std::as_bytes(std::span(found)), offset_of(in, written++),
                   file_.partial_path());
    found.clear();
  };
  for (std::uint64_t chunk = 0; chunk < in.chunks.size(); ++chunk) {
    records.resize(std::min(chunk_records(), in.records - chunk * chunk_records()));
    read_all(file_, offset_of(in, chunk), std::span(records));
    for (const record& each : records) {
      const std::uint64_t document = each.place.document;
      const std::uint64_t first = table.find_or_add(each, are_equal);
      if (first == document) continue;
      found.push_back({document, first});
      found_[document / 64] |= std::uint64_t{1} << (document % 64);
      if (found.size() == chunk_duplicates()) write();
      ++in.duplicates;
    }
    stop_.check();
  }
  if (!found.empty()) write();
  count_ += in.duplicates;
}

void duplicate_finder::number() {
  found_before_.clear();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (i % 8 == 0) found_before_.push_back(before);
    before += static_cast<std::uint64_t>(std::popcount(found_[i]));
  }
}

std::uint64_t duplicate_finder::number_of(std::uint64_t document) const noexcept {
  const std::size_t word = document / 64;
  std::uint64_t duplicates = found_before_[word / 8];
  for (std::size_t i = word / 8 * 8; i < word; ++i) {
    duplicates += static_cast<std::uint64_t>(std::popcount(found_[i]));
  }
  const std::uint64_t earlier = (std::uint64_t{1} << (document % 64)) - 1;
  duplicates += static_cast<std::uint64_t>(std::popcount(found_[word] & earlier));
  return document - duplicates;
}

void duplicate_finder::load(bucket& from) {
  from.loaded.resize(std::min(chunk_duplicates(), from.duplicates - from.read));
  read_all(file_, offset_of(from, from.read / chunk_duplicates()), std::span(from.loaded));
}

duplicate duplicate_finder::next() {
  const std::size_t i = heads_.top().second;
  heads_.pop();
  bucket& from = buckets_[i];
  const duplicate result = from.loaded[from.read++ % chunk_duplicates()];
  if (from.read == from.duplicates) {
    formats::free_memory(from.loaded);
    return result;
  }
  if (from.read % chunk_duplicates() == 0) {
    stop_.check();
    load(from);
  }
  heads_.emplace(from.loaded[from.read % chunk_duplicates()].document, i);
  return result;
}

}  // namespace millrace::preprocess
