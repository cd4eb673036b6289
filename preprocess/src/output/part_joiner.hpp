// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <millrace/formats/src.hpp>
#include <millrace/io/file_mapping.hpp>

#include "output/dataset_writer.hpp"

namespace millrace::preprocess {

/// Puts the parts of a dataset one behind the other, some bytes at a time.
///
/// How far that is shows in the state of the whole alone, so that whoever stops between two calls
/// of next() may go on with another joiner, in another process. For one thread.
class part_joiner {
 public:
  /// @param whole        the start of all that, mostly nothing
  /// @param parts        in order; outlive this, as `whole` does
  /// @param inputs       names for the parts' P.src
  /// @param chunk_bytes  about so many are copied by a call
  part_joiner(dataset_writer& whole, std::span<dataset_writer* const> parts,
              std::span<const std::string> inputs, std::size_t chunk_bytes);

  /// Appends the next bytes; false when there are none.
  ///
  /// @throws io_error, format_error  a part cannot be read, or is not as it was written.
  bool next();

 private:
  void copy_documents(dataset_writer& part, std::int64_t from);
  void copy_lengths(dataset_writer& part, std::int64_t from);
  void copy_tokens(dataset_writer& part, std::uint64_t from);
  void copy_places(dataset_writer& part, std::uint64_t from);

  dataset_writer& whole_;
  std::span<dataset_writer* const> parts_;
  std::span<const std::string> inputs_;
  std::size_t chunk_bytes_;
  std::size_t part_ = 0;                 // the next is of this one
  dataset_state before_;                 // the sums of those before it
  std::optional<io::file_mapping> src_;  // of that part, once it is needed
  std::optional<formats::src_view> places_;
};

}  // namespace millrace::preprocess
