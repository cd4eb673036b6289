// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// PREFIX.mask: which tokens of a dataset a model learns to predict (formats/spec/mask.md).
/// Immutable and therefore thread-safe.
class token_mask {
 public:
  /// Opens the file. Its bits are not read; see `verify`.
  ///
  /// @return nullopt if there is no PREFIX.mask: every token is to be predicted
  /// @throws format_error  the file is damaged, or has bits for another number of tokens
  /// @throws io_error      the file exists but cannot be read
  static std::optional<token_mask> find(const indexed_dataset& data) {
    return find(data.prefix(), static_cast<std::uint64_t>(data.token_count()));
  }
  /// Whether there is a PREFIX.mask. Reads nothing.
  static bool is_there(const std::filesystem::path& prefix) {
    return io::identity_of(sidecar_paths(prefix).mask).has_value();
  }
  /// @param tokens  number of tokens of the dataset
  static std::optional<token_mask> find(const std::filesystem::path& prefix, std::uint64_t tokens) {
    const auto path = sidecar_paths(prefix).mask;
    auto file = map_sidecar(path);
    if (!file) return std::nullopt;
    try {
      formats::mask_view view = formats::parse_mask(file->bytes());
      if (view.token_count() != tokens) {
        throw format_error(16, "the mask is for " + std::to_string(view.token_count()) +
                                   " tokens, but the .idx has " + std::to_string(tokens) +
                                   "; it belongs to another dataset");
      }
      return token_mask(path, *std::move(file), view);
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }

  /// The bit t says whether token t is to be predicted. Tokens are counted through all documents,
  /// in the order of the .bin. Valid as long as this object.
  const formats::bit_span& bits() const noexcept { return view_.bits; }
  /// The whole file. Valid as long as this object.
  std::span<const std::byte> bytes() const noexcept { return file_.bytes(); }
  const std::filesystem::path& path() const noexcept { return path_; }
  std::int64_t trained_count() const noexcept { return static_cast<std::int64_t>(view_.trained); }
  std::string root() const { return formats::root_hex(view_); }

  /// Number of blocks, each of which has a checksum. Bit t is in block t / 8 / sum_block_bytes.
  std::size_t block_count() const noexcept { return view_.blocks.size(); }
  /// Checks the bits of a block.
  /// @throws format_error  a bit has changed since the file was written
  void verify_block(std::size_t block) const {
    try {
      formats::verify_mask_block(view_, block);
    } catch (const format_error& e) {
      throw e.in(path_);
    }
  }
  /// Checks all bits.
  /// @throws format_error  a bit has changed since the file was written
  void verify() const {
    try {
      formats::verify_mask(view_);
    } catch (const format_error& e) {
      throw e.in(path_);
    }
  }

 private:
  token_mask(std::filesystem::path path, io::file_mapping file, const formats::mask_view& view)
      : path_(std::move(path)), file_(std::move(file)), view_(view) {}

  std::filesystem::path path_;
  io::file_mapping file_;  // moving it does not move its bytes
  formats::mask_view view_;
};

}  // namespace millrace::dataset
