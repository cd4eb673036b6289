// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>

// Example:
//
//     // Writes a dataset without the copies of documents.
//     namespace dataset = millrace::dataset;
//     const dataset::indexed_dataset data("web_text_document",
//                                         {.check = dataset::check_level::full});
//     const auto copies = dataset::repeated_documents(data, 8);
//     const auto kept = dataset::other_documents(copies, data.document_count());
//     const auto done = dataset::filter_documents(data, kept, "clean_text_document");
//     std::cout << done.documents << " documents are left\n";

/// Makes a dataset of some of the documents of another one.
namespace millrace::dataset {

/// Documents `first` to `last` - 1.
struct document_numbers {
  std::int64_t first = 0;
  std::int64_t last = 0;

  friend bool operator==(const document_numbers&, const document_numbers&) = default;
};

/// Sorts ranges of documents and joins those that overlap or touch. Removes empty ones.
MILLRACE_EXPORT std::vector<document_numbers> joined_documents(
    std::vector<document_numbers> documents);

/// The documents of 0 to `document_count` - 1 that are not in the list.
/// @param documents  as `joined_documents` returns them
MILLRACE_EXPORT std::vector<document_numbers> other_documents(
    const std::vector<document_numbers>& documents, std::int64_t document_count);

/// The documents that are equal to an earlier one: the same ids, in sequences of the same lengths
/// and modes. Hashes find candidates, and their ids are compared. Uses 24 bytes of memory per
/// document.
///
/// @pre the dataset was opened with `check_level::full`
/// @param progress  called now and then with the number of tokens that were hashed so far
/// @throws io_error  a part of the `.bin` cannot be read
MILLRACE_EXPORT std::vector<document_numbers> repeated_documents(
    const indexed_dataset& data, int workers = 1,
    const std::function<void(std::int64_t tokens)>& progress = {});

/// What `filter_documents` wrote.
struct filtered_dataset {
  formats::dtype type = formats::dtype::uint16;
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  bool places = false;       ///< it has a PREFIX.src
  std::string sum_root;      ///< root of PREFIX.sum, in hexadecimal
  std::string mask_root;     ///< root of PREFIX.mask; empty if there is none
  std::int64_t trained = 0;  ///< with a PREFIX.mask: number of tokens to be predicted

  friend bool operator==(const filtered_dataset&, const filtered_dataset&) = default;
};

struct filter_options {
  bool overwrite = false;  ///< replace a dataset that exists
  /// Makes the contents of PREFIX.meta; it may return an empty text. Without it, there is none.
  std::function<std::string(const filtered_dataset&)> meta = {};
  /// Called now and then with the number of tokens that were written so far. It may throw to stop.
  std::function<void(std::int64_t tokens)> progress = {};
};

/// Writes documents of a dataset as a new one: PREFIX.bin and .idx, byte for byte as if they had
/// been made of these documents alone, PREFIX.sum, and PREFIX.src if the old dataset has one. Needs
/// constant memory. The new files appear together, or none does.
///
/// @param keep    as `joined_documents` returns them
/// @param prefix  path of the new dataset, without `.bin` and `.idx`
/// @pre the dataset was opened with `check_level::full`
/// @throws config_error  a document does not exist; none is kept; the new dataset is the old one;
/// its
///                       folder does not exist; or it exists, and `overwrite` is false
/// @throws error         the disk has too little free space
/// @throws io_error, format_error  a file cannot be read or written, or is damaged
MILLRACE_EXPORT filtered_dataset filter_documents(const indexed_dataset& data,
                                                  const std::vector<document_numbers>& keep,
                                                  const std::filesystem::path& prefix,
                                                  const filter_options& options = {});

}  // namespace millrace::dataset
