// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/block_states.hpp>

namespace millrace::loader {

/// A file whose blocks are checked: a `.bin` or an `.idx`. Thread-safe.
class MILLRACE_EXPORT checked_file {
 public:
  /// A fault in a block, and its location: byte `at_byte` of the file.
  struct problem {
    bool is_token = false;
    std::uint64_t at_byte = 0;
    std::string what;
  };

  /// @param table  the readers' table of open files, so that the checks see the same file as the
  ///               readers
  /// @param ids    type of the file's token ids; empty if the file has no token ids
  checked_file(std::shared_ptr<open_files> table, const data_file& file,
               std::optional<formats::dtype> ids)
      : table_(std::move(table)),
        file_(table_->attach(file)),
        size_(file.bytes),
        ids_(ids),
        states_(formats::sum_block_count(file.bytes)) {}

  const std::filesystem::path& path() const noexcept { return file_->path(); }
  std::uint64_t size_bytes() const noexcept { return size_; }
  block_states& states() noexcept { return states_; }
  const block_states& states() const noexcept { return states_; }

  static std::uint64_t first_byte(std::uint64_t block) noexcept {
    return block * formats::sum_block_bytes;
  }
  std::uint64_t last_byte(std::uint64_t block) const noexcept {
    return std::min(size_, first_byte(block) + formats::sum_block_bytes);
  }

  /// @throws io_error  the file is gone, truncated or replaced; see `open_files::open`
  open_files::held_descriptor open() const { return table_->open(*file_); }

  /// Returns the readers' memory map of a block; null if the block is not mapped.
  open_files::held_map mapped(std::uint64_t block) const {
    return table_->map_if_there(*file_, first_byte(block));
  }

  /// Reads a block in pieces of the buffer's size, and checks it. Returns the fault, if there is
  /// one.
  ///
  /// @param map         a memory map of the block, which is twice as fast as reading the file; may
  ///                    be null
  /// @param expected    the block's checksum; empty if there is none
  /// @param vocab_size  limit of token ids; 0: do not check tokens
  /// @param buffer      its size is a multiple of 8 bytes. If the file is in memory, the buffer
  ///                    should fit in the L2 cache; if not, it should hold a whole block
  /// @throws io_error   the block cannot be read, or the file is shorter than expected (ENODATA)
  std::optional<problem> check(const io::unique_fd& fd, const open_files::map* map,
                               std::uint64_t block, std::optional<std::uint32_t> expected,
                               std::int64_t vocab_size, std::span<std::byte> buffer,
                               io::page_cache pages) const;

  /// Returns the first token in `bytes` that is not a valid id. `offset` is the position of these
  /// bytes in the file.
  std::optional<problem> check_tokens(std::span<const std::byte> bytes, std::uint64_t offset,
                                      std::int64_t vocab_size) const;

 private:
  void read(const io::unique_fd& fd, const open_files::map* map, std::span<std::byte> piece,
            std::uint64_t at, io::page_cache pages) const;

  std::shared_ptr<open_files> table_;
  std::shared_ptr<open_files::file> file_;
  std::uint64_t size_;
  std::optional<formats::dtype> ids_;
  block_states states_;
};

}  // namespace millrace::loader
