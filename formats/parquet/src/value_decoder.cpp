// SPDX-License-Identifier: Apache-2.0
#include "value_decoder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "delta_decoder.hpp"
#include "run_decoder.hpp"

namespace millrace::parquet::detail {
namespace {

/// As `number_decoder` wants a value of a column.
template <class T>
std::uint64_t widened(T value) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  } else {
    return static_cast<std::uint64_t>(std::int64_t{value});
  }
}

[[noreturn]] void fail_early(const place& where) {
  where.fail("a page has fewer values than its header states");
}

template <class T>
class plain_numbers final : public number_decoder {
 public:
  plain_numbers(std::span<const char> bytes, const place& where) : bytes_(bytes), where_(where) {}

  void read(std::uint64_t* out, std::size_t count) override {
    if (count > bytes_.size() / sizeof(T)) fail_early(where_);
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
      out[i] = widened(value);
    }
    bytes_ = bytes_.subspan(count * sizeof(T));
  }

 private:
  std::span<const char> bytes_;
  const place& where_;
};

class plain_booleans final : public number_decoder {
 public:
  plain_booleans(std::span<const char> bytes, const place& where) : bytes_(bytes), where_(where) {}

  void read(std::uint64_t* out, std::size_t count) override {
    if (count > bytes_.size() * 8 - next_) fail_early(where_);
    for (std::size_t i = 0; i < count; ++i, ++next_) {
      out[i] = static_cast<unsigned char>(bytes_[next_ / 8]) >> (next_ % 8) & 1U;
    }
  }

 private:
  std::span<const char> bytes_;
  std::size_t next_ = 0;
  const place& where_;
};

class run_booleans final : public number_decoder {
 public:
  run_booleans(std::span<const char> bytes, const place& where) : where_(where) {
    std::uint32_t size = 0;
    if (bytes.size() < sizeof size) return;  // a page of nulls alone may have no values at all
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (size > bytes.size()) fail_early(where_);
    runs_ = run_decoder(bytes.first(size), 1);
  }

  void read(std::uint64_t* out, std::size_t count) override {
    if (!runs_.read(out, count)) fail_early(where_);
  }

 private:
  run_decoder runs_;
  const place& where_;
};

/// The indices of a page with a dictionary.
class dictionary_indices {
 public:
  dictionary_indices(std::span<const char> bytes, const dictionary& distinct, std::size_t entries,
                     const place& where)
      : entries_(entries), where_(where) {
    if (!distinct.is_loaded()) where.fail("a page needs a dictionary, and there is none before it");
    if (bytes.empty()) return;  // a page of nulls alone
    const auto width = static_cast<unsigned char>(bytes.front());
    if (width > 32) where.fail("a page has dictionary indices of more than 32 bits");
    runs_ = run_decoder(bytes.subspan(1), width);
  }

  static constexpr std::size_t most = 512;

  /// Reads up to `most` indices that are checked.
  std::span<const std::uint32_t> read(std::size_t count) {
    count = std::min(count, most);
    if (!runs_.read(indices_.data(), count)) fail_early(where_);
    const auto read = std::span(indices_).first(count);
    std::uint32_t largest = 0;
    for (const std::uint32_t index : read) largest = std::max(largest, index);
    if (largest >= entries_) {
      where_.fail("a page has the dictionary index " + std::to_string(largest) +
                  ", but the dictionary has " + std::to_string(entries_) + " entries");
    }
    return read;
  }

 private:
  std::size_t entries_;
  run_decoder runs_;
  std::array<std::uint32_t, most> indices_;
  const place& where_;
};

class dictionary_numbers final : public number_decoder {
 public:
  dictionary_numbers(std::span<const char> bytes, const dictionary& distinct, const place& where)
      : numbers_(distinct.numbers()), indices_(bytes, distinct, numbers_.size(), where) {}

  void read(std::uint64_t* out, std::size_t count) override {
    while (count != 0) {
      const auto indices = indices_.read(count);
      for (const std::uint32_t index : indices) *out++ = numbers_[index];
      count -= indices.size();
    }
  }

 private:
  std::span<const std::uint64_t> numbers_;
  dictionary_indices indices_;
};

class delta_numbers final : public number_decoder {
 public:
  delta_numbers(std::span<const char> bytes, physical type, const place& where)
      : decoder_(bytes, where), is_int32_(type == physical::int32) {}

  void read(std::uint64_t* out, std::size_t count) override {
    decoder_.read(out, count);
    if (!is_int32_) return;
    for (std::size_t i = 0; i < count; ++i) out[i] = widened(static_cast<std::int32_t>(out[i]));
  }

 private:
  delta_decoder decoder_;
  bool is_int32_;
};

/// BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
template <class T>
class split_numbers final : public number_decoder {
 public:
  split_numbers(std::span<const char> bytes, const place& where)
      : bytes_(bytes), values_(bytes.size() / sizeof(T)), where_(where) {
    if (bytes.size() % sizeof(T) != 0) {
      where.fail("a page has " + std::to_string(bytes.size()) +
                 " bytes of values, not a multiple of the size of a value");
    }
  }

  void read(std::uint64_t* out, std::size_t count) override {
    if (count > values_ - next_) fail_early(where_);
    for (std::size_t i = 0; i < count; ++i, ++next_) {
      std::array<char, sizeof(T)> parts;
      for (std::size_t k = 0; k < sizeof(T); ++k) parts[k] = bytes_[k * values_ + next_];
      out[i] = widened(std::bit_cast<T>(parts));
    }
  }

 private:
  std::span<const char> bytes_;
  std::size_t values_;
  std::size_t next_ = 0;
  const place& where_;
};

class plain_texts final : public text_decoder {
 public:
  plain_texts(std::span<const char> bytes, const place& where)
      : at_(bytes.data()), end_(at_ + bytes.size()), where_(where) {}

  std::size_t read(std::string_view* out, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t size = 0;
      const auto left = static_cast<std::size_t>(end_ - at_);
      if (left < sizeof size) fail_early(where_);
      std::memcpy(&size, at_, sizeof size);
      if (size > left - sizeof size) {
        where_.fail("a page has a text of " + std::to_string(size) + " bytes, and ends after " +
                    std::to_string(left - sizeof size));
      }
      out[i] = {at_ + sizeof size, size};
      at_ += sizeof size + size;
    }
    return count;
  }

 private:
  const char* at_;
  const char* end_;
  const place& where_;
};

class dictionary_texts final : public text_decoder {
 public:
  dictionary_texts(std::span<const char> bytes, const dictionary& distinct, const place& where)
      : distinct_(distinct), indices_(bytes, distinct, distinct.text_count(), where) {}

  std::size_t read(std::string_view* out, std::size_t count) override {
    const auto indices = indices_.read(count);
    for (const std::uint32_t index : indices) *out++ = distinct_.text(index);
    return indices.size();
  }

 private:
  const dictionary& distinct_;
  dictionary_indices indices_;
};

/// DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
class delta_length_texts final : public text_decoder {
 public:
  delta_length_texts(std::span<const char> bytes, const place& where)
      : lengths_(bytes, where), bytes_(lengths_.rest()), where_(where) {}

  std::size_t read(std::string_view* out, std::size_t count) override {
    count = std::min(count, most);
    lengths_.read(numbers_.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      if (numbers_[i] > bytes_.size()) {
        where_.fail("a page has a text longer than the bytes that are left in the page");
      }
      out[i] = {bytes_.data(), static_cast<std::size_t>(numbers_[i])};
      bytes_ = bytes_.subspan(static_cast<std::size_t>(numbers_[i]));
    }
    return count;
  }

 private:
  static constexpr std::size_t most = 256;
  delta_decoder lengths_;
  std::span<const char> bytes_;
  std::array<std::uint64_t, most> numbers_;
  const place& where_;
};

/// DELTA_BYTE_ARRAY: how much each text shares with the front of the previous one, and its rest.
class delta_texts final : public text_decoder {
 public:
  delta_texts(std::span<const char> bytes, const place& where)
      : shared_(bytes, where), rests_(shared_.rest(), where), where_(where) {}

  std::size_t read(std::string_view* out, std::size_t count) override {
    // The last text of the previous call is the start of the next one. It moves to the other
    // buffer's place, so that this one can be filled again.
    std::swap(current_, previous_);
    std::size_t used = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!has_next_) take_next();
      const std::size_t size = next_shared_ + next_rest_.size();
      if (next_shared_ > last_.size()) {
        where_.fail("a page has a text that shares more bytes with the previous one than that has");
      }
      if (next_shared_ == 0) {
        last_ = next_rest_;
      } else {
        // A text is at most as long as all the rests together, which are in the page; but many
        // texts can share much.
        if (i == 0) current_.grow(std::max(size, room));
        if (size > current_.capacity() - used) return i;
        char* to = current_.data() + used;
        std::memcpy(to, last_.data(), next_shared_);
        std::memcpy(to + next_shared_, next_rest_.data(), next_rest_.size());
        last_ = {to, size};
        used += size;
      }
      if (i == 0 && current_.capacity() == 0) current_.grow(room);
      has_next_ = false;
      out[i] = last_;
    }
    return count;
  }

 private:
  static constexpr std::size_t room = std::size_t{1} << 18;

  void take_next() {
    std::uint64_t shared = 0;
    shared_.read(&shared, 1);
    (void)rests_.read(&next_rest_, 1);
    next_shared_ = static_cast<std::size_t>(std::min<std::uint64_t>(shared, no_size));
    has_next_ = true;
  }

  static constexpr std::size_t no_size = std::numeric_limits<std::size_t>::max() / 2;
  delta_decoder shared_;
  delta_length_texts rests_;
  buffer current_;
  buffer previous_;  // has `last_` at the start of a call
  std::string_view last_;
  bool has_next_ = false;
  std::size_t next_shared_ = 0;
  std::string_view next_rest_;
  const place& where_;
};

}  // namespace

/// A place takes no more memory than a text, even an empty one, takes in the page.
void dictionary::find_texts(std::span<const char> bytes, std::size_t count, const place& where) {
  plain_texts texts(bytes, where);
  texts_.resize(count);
  for (std::uint32_t& begin : texts_) {
    std::string_view text;
    (void)texts.read(&text, 1);
    begin = static_cast<std::uint32_t>(text.data() - bytes.data() - 4);
  }
}

void dictionary::load(page_reader& pages, const page_header& header, const selected_leaf& leaf) {
  const place& where = pages.where();
  if (is_loaded_) where.fail("there is a second dictionary");
  if (header.values_encoding != encoding::plain &&
      header.values_encoding != encoding::plain_dictionary) {
    where.refuse("its dictionary has the encoding " + name_of(header.values_encoding) +
                 ", which cannot be read; write the file again with another program");
  }
  const auto count = static_cast<std::size_t>(header.values);
  const std::size_t size = pages.load_dictionary(bytes_);
  const std::span<const char> bytes(bytes_.data(), size);
  // Each value takes room in the page, so that a false count fails before it takes memory.
  const std::size_t width = leaf.type == physical::int64 || leaf.type == physical::float64 ? 8 : 4;
  if (leaf.type != physical::boolean && count > size / width) {
    where.fail("a dictionary of " + std::to_string(size) + " bytes should have " +
               std::to_string(count) + " values");
  }
  if (leaf.type == physical::boolean) {
    where.fail("a column of booleans has a dictionary");
  } else if (leaf.type == physical::byte_array) {
    find_texts(bytes, count, where);
  } else {
    numbers_.resize(count);
    make_number_decoder(encoding::plain, leaf.type, bytes, *this, where)
        ->read(numbers_.data(), count);
  }
  is_loaded_ = true;
}

namespace {

[[noreturn]] void refuse_encoding(encoding how, const place& where) {
  where.refuse("the page at byte " + std::to_string(where.offset) + " has the encoding " +
               name_of(how) + ", which cannot be read for this type; write the file again with " +
               "another encoding");
}

template <template <class> class Decoder>
std::unique_ptr<number_decoder> of_type(encoding how, physical type, std::span<const char> bytes,
                                        const place& where) {
  switch (type) {
    case physical::int32:
      return std::make_unique<Decoder<std::int32_t>>(bytes, where);
    case physical::int64:
      return std::make_unique<Decoder<std::int64_t>>(bytes, where);
    case physical::float32:
      return std::make_unique<Decoder<float>>(bytes, where);
    case physical::float64:
      return std::make_unique<Decoder<double>>(bytes, where);
    default:
      refuse_encoding(how, where);
  }
}

}  // namespace

std::unique_ptr<number_decoder> make_number_decoder(encoding how, physical type,
                                                    std::span<const char> bytes,
                                                    const dictionary& distinct,
                                                    const place& where) {
  switch (how) {
    case encoding::plain:
      if (type == physical::boolean) return std::make_unique<plain_booleans>(bytes, where);
      return of_type<plain_numbers>(how, type, bytes, where);
    case encoding::plain_dictionary:
    case encoding::rle_dictionary:
      return std::make_unique<dictionary_numbers>(bytes, distinct, where);
    case encoding::rle:
      if (type != physical::boolean) break;
      return std::make_unique<run_booleans>(bytes, where);
    case encoding::delta_binary_packed:
      if (type != physical::int32 && type != physical::int64) break;
      return std::make_unique<delta_numbers>(bytes, type, where);
    case encoding::byte_stream_split:
      return of_type<split_numbers>(how, type, bytes, where);
    default:
      break;
  }
  refuse_encoding(how, where);
}

std::unique_ptr<text_decoder> make_text_decoder(encoding how, std::span<const char> bytes,
                                                const dictionary& distinct, const place& where) {
  switch (how) {
    case encoding::plain:
      return std::make_unique<plain_texts>(bytes, where);
    case encoding::plain_dictionary:
    case encoding::rle_dictionary:
      return std::make_unique<dictionary_texts>(bytes, distinct, where);
    case encoding::delta_length_byte_array:
      return std::make_unique<delta_length_texts>(bytes, where);
    case encoding::delta_byte_array:
      return std::make_unique<delta_texts>(bytes, where);
    default:
      break;
  }
  refuse_encoding(how, where);
}

}  // namespace millrace::parquet::detail
