// SPDX-License-Identifier: Apache-2.0
#include "output/cut_points.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>

#include "input/read_back.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::array<unsigned char, 8> magic = {'M', 'I', 'L', 'L', 'C', 'U', 'T', 0};
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 20;
constexpr std::size_t trailer_bytes = 12;

std::vector<std::byte> header_of(std::size_t keys, std::size_t key) {
  formats::byte_writer writer;
  writer.put(std::as_bytes(std::span(magic)));
  writer("the version", version);
  writer("the number of keys", static_cast<std::uint32_t>(keys));
  writer("the key", static_cast<std::uint32_t>(key));
  return writer.take();
}

// Calls `work(number)` for each fixed number of a point and the field that holds it, in the order
// of the file.
template <class Point, class Work>
void for_each_field(Point& point, Work&& work) {
  std::size_t number = 0;
  auto& counts = point.counts;
  work(number++, counts.lines);
  work(number++, counts.text_bytes);
  work(number++, point.input_bytes);
  work(number++, point.input_lines);
  work(number++, point.input_crc32c);
  work(number++, point.begin);
  work(number++, point.input);
  work(number++, counts.blank_lines);
  work(number++, counts.not_sampled);
  work(number++, counts.lone_surrogates);
  work(number++, counts.special_tokens);
  work(number++, counts.overlong);
  work(number++, counts.truncated);
  for (auto& bad : counts.bad_records) work(number++, bad);
}

// Whether a number begins again with each input.
constexpr bool is_of_input(std::size_t number) noexcept {
  return number >= 2 && number <= 5;
}

}  // namespace

cut_numbers::cut_numbers(const cut_point& point) : cut_numbers(point.tokens.size()) {
  for_each_field(point, [&](std::size_t number, const auto& field) {
    values_[number] = static_cast<std::uint64_t>(field);
  });
  for (std::size_t key = 0; key < point.tokens.size(); ++key) {
    values_[fixed + key] = static_cast<std::uint64_t>(point.tokens[key]);
  }
}

cut_point cut_numbers::point() const {
  cut_point point;
  for_each_field(point, [&]<class Field>(std::size_t number, Field& field) {
    field = static_cast<Field>(values_[number]);
  });
  for (std::size_t i = fixed; i < values_.size(); ++i) {
    point.tokens.push_back(static_cast<std::int64_t>(values_[i]));
  }
  return point;
}

void cut_numbers::encode(const cut_numbers& before, std::vector<std::byte>& to) const {
  const auto put = [&](std::uint64_t value) {
    std::array<std::byte, formats::most_varint_bytes> buffer;
    to.insert(to.end(), buffer.data(), formats::put_varint(buffer.data(), value));
  };
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < fixed; ++i) {
    if (values_[i] != before.values_[i]) changed |= std::uint64_t{1} << i;
  }
  put(changed);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i < fixed && (changed >> i & 1) == 0) continue;
    put(formats::zigzag(values_[i] - before.values_[i]));
  }
}

void cut_numbers::decode(formats::varint_reader& from) {
  const std::uint64_t at = from.offset();
  const std::uint64_t changed = from.next("the set of changed numbers");
  if (changed >> fixed != 0) {
    throw format_error(
        at, fmt::format("the set of changed numbers is {:#x}, expected {} bits", changed, fixed));
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i < fixed && (changed >> i & 1) == 0) continue;
    const std::uint64_t difference = formats::from_zigzag(from.next("a difference"));
    values_[i] += difference;
    if (!is_of_input(i) && (difference >> 63 != 0 || values_[i] >> 63 != 0)) {
      throw format_error(from.offset(), "a count falls, or is 2^63 or more");
    }
  }
}

cut_writer::cut_writer(const std::filesystem::path& path, std::size_t keys, std::size_t key)
    : file_(path), last_(keys) {
  const auto header = header_of(keys, key);
  file_.append(header);
  crc32c_ = formats::crc32c(header);
}

cut_writer::cut_writer(const std::filesystem::path& path, std::size_t keys, std::size_t key,
                       std::int64_t documents)
    : file_(path, io::atomic_file::start::go_on), last_(keys) {
  std::uint64_t end = 0;
  {
    const io::file_mapping mapping(file_.partial_path());
    const auto bytes = mapping.bytes();
    const auto header = header_of(keys, key);
    try {
      if (bytes.size() < header.size() || !std::ranges::equal(bytes.first(header.size()), header)) {
        throw format_error(0, "the header differs from the one that this run wrote");
      }
      formats::varint_reader points(bytes.subspan(header.size()), header.size());
      for (; std::cmp_less(points_, documents); ++points_) last_.decode(points);
      end = points.offset();
    } catch (const format_error& e) {
      throw config_error(fmt::format("--resume: {}: {}; pass --overwrite to start again",
                                     file_.partial_path().string(), e.what()));
    }
    crc32c_ = formats::crc32c(bytes.first(end));
  }
  cut_back(file_, end);
}

void cut_writer::append(const cut_point& point) {
  cut_numbers numbers(point);
  numbers.encode(last_, bytes_);
  last_ = std::move(numbers);
  ++points_;
}

void cut_writer::flush() {
  file_.append(bytes_);
  crc32c_ = formats::crc32c(bytes_, crc32c_);
  bytes_.clear();
}

void cut_writer::finish() {
  flush();
  formats::byte_writer trailer;
  trailer("the number of points", points_);
  trailer("the checksum", formats::crc32c(trailer.bytes(), crc32c_));
  file_.append(trailer.bytes());
  file_.resize(file_.size_bytes());
}

cut_reader::cut_reader(const std::filesystem::path& path) : path_(path), file_(path) {
  try {
    formats::byte_reader header(file_.bytes());
    if (!std::ranges::equal(header.take("the magic", magic.size()),
                            std::as_bytes(std::span(magic)))) {
      throw format_error(0, "expected the magic of a .cuts file");
    }
    std::uint32_t found_version = 0;
    std::uint32_t keys = 0;
    std::uint32_t key = 0;
    header("the version", found_version);
    if (found_version != version) {
      throw format_error(8, fmt::format("expected version {}, found {}", version, found_version));
    }
    header("the number of keys", keys);
    header("the key", key);
    if (key >= keys || keys > file_.bytes().size()) {
      throw format_error(12, fmt::format("it says key {} of {}", key, keys));
    }
    const std::size_t body =
        header.remaining() < trailer_bytes ? 0 : header.remaining() - trailer_bytes;
    points_ = header.take("the points", body);
    std::uint64_t points = 0;
    std::uint32_t crc32c = 0;
    const std::uint32_t found = formats::crc32c(file_.bytes().first(header_bytes + body + 8));
    header("the number of points", points);
    header("the checksum", crc32c);
    if (crc32c != found) {
      throw format_error(0, fmt::format("its checksum is {}, expected {}", formats::hex(found),
                                        formats::hex(crc32c)));
    }
    // Each point takes at least one byte.
    if (points == 0 || points > points_.size()) {
      throw format_error(header_bytes + body,
                         fmt::format("{} points cannot be in {} bytes", points, body));
    }
    keys_ = keys;
    key_ = key;
    documents_ = static_cast<std::int64_t>(points - 1);
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

void cut_reader::for_each(const std::function<void(const cut_point&)>& take) const {
  cut_numbers numbers(keys_);
  formats::varint_reader from(points_, header_bytes);
  for (std::int64_t number = 0; number <= documents_; ++number) {
    try {
      numbers.decode(from);
      if (number == documents_ && !from.at_end()) {
        throw format_error(from.offset(), "bytes follow the last point");
      }
    } catch (const format_error& e) {
      throw e.in(path_);
    }
    cut_point point = numbers.point();
    point.counts.documents = number;
    take(point);
  }
}

}  // namespace millrace::preprocess
