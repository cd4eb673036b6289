// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::io {

/// The progress of a mask_writer. The file holds the bits of whole bytes; the others are here.
struct mask_state {
  std::uint64_t tokens = 0;
  std::uint64_t trained = 0;
  std::uint64_t last_bits = 0;  ///< the last tokens % 8 bits

  /// Bytes of the file that belong to this state.
  std::uint64_t file_bytes() const noexcept { return formats::mask_header_bytes + tokens / 8; }
};
static_assert(std::is_trivially_copyable_v<mask_state>);

/// Writes a `.mask` (formats/spec/mask.md) while tokens arrive. Each `append` writes to the file,
/// so pass many bits at a time. Not thread-safe.
class mask_writer {
 public:
  using state = mask_state;

  /// Starts a new file.
  explicit mask_writer(atomic_file file) : file_(std::move(file)) {
    file_.append(formats::encode_mask_header(0, 0));  // a placeholder; finish() overwrites it
  }
  /// Resumes a file from a state.
  /// @pre file.size_bytes() == from.file_bytes()
  mask_writer(atomic_file file, const mask_state& from) : file_(std::move(file)), state_(from) {
    assert(file_.size_bytes() == from.file_bytes());
  }

  /// Appends the bits [first, last): those of the next tokens.
  void append(const formats::bit_span& bits, std::uint64_t first, std::uint64_t last) {
    part_.clear();
    part_.append_word(state_.last_bits, static_cast<unsigned>(state_.tokens % 8));
    part_.append(bits, first, last);
    const std::uint64_t whole = part_.size() / 8;
    file_.append(part_.bits().bytes().first(whole));
    state_.tokens += last - first;
    state_.trained += bits.count(first, last);
    state_.last_bits = part_.bits().word(8 * whole, static_cast<unsigned>(part_.size() % 8));
  }

  const mask_state& save() const noexcept { return state_; }

  /// Discards the bits that were appended after the state `to` was saved.
  void go_back(const mask_state& to) {
    file_.resize(to.file_bytes());
    state_ = to;
  }

  /// Reads back some bits.
  /// @pre first % 8 == 0 and first + count <= save().tokens
  formats::bit_buffer read(std::uint64_t first, std::uint64_t count) const {
    assert(first % 8 == 0 && first + count <= state_.tokens);
    formats::bit_buffer bits;
    std::uint64_t left = std::min(first + count, state_.tokens / 8 * 8) - first;
    const std::uint64_t begin = formats::mask_header_bytes + first / 8;
    read_back(begin, begin + formats::mask_bit_bytes(left), [&](std::span<const std::byte> bytes) {
      const std::uint64_t part = std::min<std::uint64_t>(8 * bytes.size(), left);
      bits.append(formats::bit_span(bytes, part), 0, part);
      left -= part;
    });
    const auto rest = static_cast<unsigned>(count - bits.size());
    if (rest != 0) bits.append_word(state_.last_bits & ((std::uint64_t{1} << rest) - 1), rest);
    return bits;
  }

  /// Completes the file, under its partial name.
  /// @return the root, in hexadecimal
  std::string finish() {
    if (state_.tokens % 8 != 0) {
      const auto last = static_cast<std::uint8_t>(state_.last_bits);
      file_.append(std::as_bytes(std::span(&last, 1)));
    }
    std::vector<std::uint32_t> checksums;
    formats::block_checksums blocks;
    read_back(formats::mask_header_bytes, file_.size_bytes(),
              [&](std::span<const std::byte> bytes) { blocks.add(bytes, checksums); });
    blocks.finish(checksums);
    const auto header = formats::encode_mask_header(state_.tokens, state_.trained);
    const auto root = formats::mask_root(header, std::as_bytes(std::span(checksums)));
    file_.append(std::as_bytes(std::span(checksums)));
    file_.append(std::as_bytes(std::span(root)));
    file_.resize(file_.size_bytes());  // frees the reserved space after the end
    pwrite_all(file_.fd(), header, 0, file_.partial_path());
    return formats::hex(std::as_bytes(std::span(root)));
  }

  atomic_file& file() noexcept { return file_; }

 private:
  template <class Take>
  void read_back(std::uint64_t begin, std::uint64_t end, Take&& take) const {
    std::vector<std::byte> chunk(std::min<std::uint64_t>(std::uint64_t{1} << 20, end - begin));
    while (begin < end) {
      const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), end - begin));
      if (pread_some(file_.fd(), part, begin, file_.partial_path()) != part.size()) {
        throw io_error(file_.partial_path(), "read back (did another process change it?)", EIO);
      }
      take(std::span<const std::byte>(part));
      begin += part.size();
    }
  }

  atomic_file file_;
  mask_state state_;
  formats::bit_buffer part_;  // a member only to reuse its memory
};

}  // namespace millrace::io
