// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/src_encoder.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/detail/dataset_files.hpp>
#include <millrace/io/detail/mask_writer.hpp>

namespace millrace::dataset {

struct writer_options {
  formats::dtype type = formats::dtype::uint16;
  bool modes = false;   ///< each sequence has a mode
  bool places = false;  ///< write PREFIX.src
  bool mask = false;    ///< write PREFIX.mask
  /// Replace a dataset that exists. Otherwise, it is refused.
  bool overwrite = false;
  /// Free disk space that the dataset needs at least, in bytes; 0 if it is unknown.
  std::uint64_t bytes = 0;
};

/// Writes a dataset that is made from other datasets: PREFIX.bin, .idx and .sum, and on request
/// .src, .mask and .meta. Needs constant memory.
///
/// Tokens, sequences, documents and places may be appended in any order, each of them front to
/// back. No file has its final name before `publish`; the destructor removes unfinished files. Use
/// an object from one thread.
class MILLRACE_EXPORT dataset_writer {
 public:
  /// @throws config_error  the folder of `prefix` does not exist; or a file of a dataset `prefix`
  ///                       exists, and `options.overwrite` is false.
  /// @throws error         the disk has less free space than `options.bytes`.
  /// @throws io_error      a file cannot be created, or another process is writing this dataset.
  dataset_writer(const std::filesystem::path& prefix, const writer_options& options);

  /// Appends to the `.bin`.
  void append_tokens(std::span<const std::byte> tokens);
  /// Appends sequences. `modes` is empty, or has one mode per sequence.
  /// @pre modes.empty() != options.modes
  void append_sequences(std::span<const std::int32_t> lengths,
                        std::span<const std::int8_t> modes = {});
  /// Appends documents. Each ends before the sequence with the given number, counted from the first
  /// sequence of the dataset.
  void append_document_ends(std::span<const std::int64_t> ends);
  /// Appends the places of documents. @pre options.places
  void append_places(std::span<const formats::source_place> places);

  /// Appends the bits [first, last): those of the next tokens. @pre options.mask
  void append_mask(const formats::bit_span& bits, std::uint64_t first, std::uint64_t last);

  std::int64_t token_count() const noexcept {
    return static_cast<std::int64_t>(bin_.size_bytes() / formats::size_bytes(options_.type));
  }
  std::int64_t sequence_count() const noexcept { return sequences_; }
  std::int64_t document_count() const noexcept { return documents_; }
  std::uint64_t bin_bytes() const noexcept { return bin_.size_bytes(); }

  /// Completes all files but PREFIX.meta, under their partial names.
  ///
  /// @param inputs  the inputs, for PREFIX.src
  /// @return the root of PREFIX.sum, in hexadecimal
  /// @throws error     lengths, document ends, places or bits contradict the tokens and each other:
  /// a bug
  ///                   of the caller, or the source changed
  /// @throws io_error  a file cannot be written
  std::string finish(std::span<const formats::src_input> inputs = {});
  /// The root of PREFIX.mask, in hexadecimal; empty if there is none.
  /// @pre finish() was called
  const std::string& mask_root() const noexcept { return mask_root_; }
  /// The number of bits that are 1.
  std::int64_t trained_count() const noexcept {
    return mask_ ? static_cast<std::int64_t>(mask_->save().trained) : 0;
  }

  /// Makes all files durable and gives them their final names. Removes old sidecars.
  ///
  /// @param meta  the contents of PREFIX.meta; empty: there is none
  /// @throws io_error  a file cannot be written or renamed
  void publish(std::string_view meta);

 private:
  template <class Take>
  void read_back(const io::atomic_file& file, std::uint64_t begin, Take&& take);

  writer_options options_;
  io::dataset_paths paths_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  io::atomic_file document_ends_;  // their place in the .idx is known only at the end
  std::optional<io::atomic_file> modes_;
  io::atomic_file sum_;
  std::optional<io::atomic_file> src_;
  std::optional<io::atomic_file> src_groups_;
  std::optional<io::atomic_file> meta_;
  std::optional<io::mask_writer> mask_;
  std::string mask_root_;
  formats::block_checksums blocks_;
  formats::src_encoder places_;
  std::vector<std::uint32_t> checksums_;  // of blocks of the .bin, then of the .idx
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
  std::int64_t tokens_of_sequences_ = 0;
  std::int64_t last_end_ = 0;
};

}  // namespace millrace::dataset
