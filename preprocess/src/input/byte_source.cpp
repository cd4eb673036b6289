// SPDX-License-Identifier: Apache-2.0
#include "input/byte_source.hpp"

#include <utility>

#include "input/array_lines.hpp"
#include "input/decompressed_source.hpp"
#include "input/file_bytes.hpp"
#include "input/read_ahead.hpp"
#include "input/table_input.hpp"

namespace millrace::preprocess {
namespace {

/// A file whose compression is detected from its first bytes, when it is first read.
class sniffed_source final : public byte_source {
 public:
  sniffed_source(std::unique_ptr<file_bytes> file, std::uint64_t most_window_bytes)
      : file_(*file), inner_(std::move(file)), most_window_bytes_(most_window_bytes) {}

  std::size_t read(std::span<std::byte> out) override {
    if (!sniffed_) {
      const compression compressed_with = compression_of(file_.peek(compression_head_bytes));
      if (compressed_with != compression::none) {
        inner_ = std::make_unique<decompressed_source>(
            std::move(inner_), compressed_with, file_.path(), restart_point(),
            std::span<const restart_point>(), most_window_bytes_);
      }
      sniffed_ = true;
    }
    return inner_->read(out);
  }
  // position_bytes() and cancel() use only the file, because another thread may be replacing
  // inner_.
  std::uint64_t position_bytes() const noexcept override { return file_.position_bytes(); }
  void cancel() noexcept override { file_.cancel(); }

 private:
  file_bytes& file_;  // the innermost source of inner_
  std::unique_ptr<byte_source> inner_;
  std::uint64_t most_window_bytes_;
  bool sniffed_ = false;
};

std::unique_ptr<byte_source> decompressed(const input_file& file,
                                          std::unique_ptr<file_bytes> bytes) {
  if (file.compressed_with != compression::none) {
    return std::make_unique<decompressed_source>(std::move(bytes), file.compressed_with, file.path,
                                                 restart_point(), std::span<const restart_point>(),
                                                 file.most_window_bytes);
  }
  return std::make_unique<sniffed_source>(std::move(bytes), file.most_window_bytes);
}

}  // namespace

std::unique_ptr<byte_source> open_input(const input_file& file) {
  if (file.has_rows()) return std::make_unique<read_ahead>(table_input(file).open_at(0));
  auto bytes = std::make_unique<file_bytes>(file);
  if (bytes->is_regular() && file.compressed_with == compression::none && !is_array(file))
    return bytes;
  return std::make_unique<read_ahead>(
      std::make_unique<array_lines>(decompressed(file, std::move(bytes)), display_path(file)));
}

std::unique_ptr<byte_source> open_input_at(const input_file& file, restart_point from,
                                           std::span<const restart_point> later) {
  auto bytes = std::make_unique<file_bytes>(file, from.compressed_offset);
  if (file.compressed_with == compression::none) return bytes;
  return std::make_unique<decompressed_source>(std::move(bytes), file.compressed_with, file.path,
                                               from, later, file.most_window_bytes);
}

bool is_array(const input_file& file) {
  if (file.has_rows()) return false;
  return array_lines(decompressed(file, std::make_unique<file_bytes>(file)), display_path(file))
      .is_array();
}

}  // namespace millrace::preprocess
