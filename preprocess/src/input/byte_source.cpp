// SPDX-License-Identifier: Apache-2.0
#include "input/byte_source.hpp"

#include <utility>

#include "input/array_lines.hpp"
#include "input/file_bytes.hpp"
#include "input/packed_source.hpp"
#include "input/read_ahead.hpp"

namespace millrace::preprocess {
namespace {

/// A file whose packing is told by its first bytes, when the first read brings them.
class sniffed_source final : public byte_source {
 public:
  sniffed_source(std::unique_ptr<file_bytes> file, std::uint64_t most_window_bytes)
      : file_(*file), inner_(std::move(file)), most_window_bytes_(most_window_bytes) {}

  std::size_t read(std::span<std::byte> out) override {
    if (!sniffed_) {
      const compression packing = packing_of(file_.peek(packing_head_bytes));
      if (packing != compression::none) {
        inner_ = std::make_unique<packed_source>(std::move(inner_), packing, file_.path(),
                                                 restart_point(), std::span<const restart_point>(),
                                                 most_window_bytes_);
      }
      sniffed_ = true;
    }
    return inner_->read(out);
  }
  // Both are asked of the file alone: inner_ changes under another thread's hands.
  std::uint64_t position_bytes() const noexcept override { return file_.position_bytes(); }
  void cancel() noexcept override { file_.cancel(); }

 private:
  file_bytes& file_;  // at the bottom of inner_
  std::unique_ptr<byte_source> inner_;
  std::uint64_t most_window_bytes_;
  bool sniffed_ = false;
};

std::unique_ptr<byte_source> unpacked(const input_file& file, std::unique_ptr<file_bytes> bytes) {
  if (file.packing != compression::none) {
    return std::make_unique<packed_source>(std::move(bytes), file.packing, file.path,
                                           restart_point(), std::span<const restart_point>(),
                                           file.most_window_bytes);
  }
  return std::make_unique<sniffed_source>(std::move(bytes), file.most_window_bytes);
}

}  // namespace

std::unique_ptr<byte_source> open_input(const input_file& file) {
  auto bytes = std::make_unique<file_bytes>(file);
  if (bytes->is_regular() && file.packing == compression::none && !is_array(file)) return bytes;
  return std::make_unique<read_ahead>(
      std::make_unique<array_lines>(unpacked(file, std::move(bytes)), display_path(file)));
}

std::unique_ptr<byte_source> open_input_at(const input_file& file, restart_point from,
                                           std::span<const restart_point> later) {
  auto bytes = std::make_unique<file_bytes>(file, from.packed_offset);
  if (file.packing == compression::none) return bytes;
  return std::make_unique<packed_source>(std::move(bytes), file.packing, file.path, from, later,
                                         file.most_window_bytes);
}

bool is_array(const input_file& file) {
  return array_lines(unpacked(file, std::make_unique<file_bytes>(file)), display_path(file))
      .is_array();
}

}  // namespace millrace::preprocess
