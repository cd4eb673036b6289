// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/options.hpp>

// Example:
//
//     // What did rank 3 get in step 1000?
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     millrace::loader::batch_reader reader(
//         std::make_shared<const millrace::dataset::stored_run>(data, 4096),
//         {.batch_size = 8, .world_size = 64});
//     const millrace::loader::batch batch = reader.at({.step = 1000, .rank = 3});
//     std::cout << batch.tokens()[0] << '\n';

namespace millrace::loader {

/// Identifies a micro-batch of a rank.
struct batch_place {
  std::int64_t step = 0;
  std::int64_t rank = 0;         ///< data-parallel rank
  std::int64_t micro_batch = 0;  ///< index in the step
};

/// Reads any micro-batches of a run, in any order: to look at what a rank got in a step. The
/// micro-batches equal those that `batch_loader` serves with the same run and options. The same
/// code makes them, but the calling thread runs it, and nothing is prepared in advance.
///
/// Use a reader from one thread. Each batch has its own memory and may outlive the reader.
class MILLRACE_EXPORT batch_reader {
 public:
  /// @param options  as for `batch_loader`. Not used: `rank`, which `at` takes instead, and the
  ///                 options about threads, look-ahead and verification
  /// @throws as the constructor of `batch_loader`
  batch_reader(std::shared_ptr<const dataset::run> run, const loader_options& options);
  batch_reader(batch_reader&&) noexcept;
  batch_reader& operator=(batch_reader&&) noexcept;
  ~batch_reader();

  /// Maps steps and ranks to positions, as for the loader.
  const dataset::sampler& ranks() const noexcept;

  /// Reads a micro-batch. Without `drop_last`, the last one may have fewer rows, or none.
  ///
  /// @throws config_error  the step, rank or micro-batch does not exist, or is not served
  /// @throws io_error, format_error  a dataset cannot be read
  batch at(const batch_place& place);

  /// Reads the samples at these positions of the run, one per row.
  ///
  /// @param number  the result's step and so on, which do not affect its rows
  /// @param positions  at most `batch_size` positions, each from 0 to `run::end()` - 1
  /// @throws config_error  there are too many positions, or one is out of range
  /// @throws io_error, format_error  a dataset cannot be read
  batch read(std::span<const std::int64_t> positions, const dataset::batch_number& number = {});

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
};

}  // namespace millrace::loader
