// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/parallel_layout.hpp>

namespace millrace::loader {

/// The arrays of a micro-batch that a rank's part of the model needs.
struct batch_needs {
  bool tokens = false;         ///< tokens and position ids, for the embedding
  bool labels = false;         ///< labels and the loss mask, for the loss
  bool document_ends = false;  ///< `cu_seqlens`, for attention

  bool any() const noexcept { return tokens || labels || document_ends; }
  friend bool operator==(const batch_needs&, const batch_needs&) = default;
};

/// Describes which stages of a model need data in addition to what the first and the last pipeline
/// stage always need.
struct pipeline_options {
  /// True if attention uses document ends, as for packed rows or masking between documents. All
  /// stages then need the document ends.
  bool document_ends = false;
  /// Multi-token prediction: the stages with layers that predict additional tokens. These stages
  /// need tokens and labels. Megatron puts such layers on the last stage.
  std::vector<std::int64_t> mtp_stages{};
  /// Number of model chunks per stage; more than 1 with interleaved schedules (virtual pipelines).
  std::int64_t model_chunks = 1;
};

/// Returns the arrays that a pipeline stage needs: tokens for the first stage, labels for the last
/// stage, and the arrays that `options` adds.
///
/// With interleaved schedules (virtual pipelines), a stage has several chunks of the model. The
/// first chunk of the first stage needs tokens, and the last chunk of the last stage needs labels.
/// So each stage needs the same arrays as without chunks. All chunks of a stage get the same
/// micro-batches, so read each micro-batch once per stage. (Megatron gives each chunk its own
/// iterator.)
///
/// @throws config_error  the stage does not exist
MILLRACE_EXPORT batch_needs needs_of_stage(std::int64_t stage, std::int64_t stages,
                                           const pipeline_options& options = {});

/// In Megatron's 1F1B schedule, the largest number of micro-batches that a stage has begun but not
/// finished at any time. A trainer that keeps each batch until its backward pass holds this many
/// batches; pass the number as `held` of the loader's options. Without interleaving, it is the
/// number of stages from this stage to the last stage.
///
/// @throws config_error  the stage does not exist, or `model_chunks` is not 1 to 1024
MILLRACE_EXPORT std::int64_t held_by_stage(std::int64_t stage, std::int64_t stages,
                                           std::int64_t model_chunks = 1);

/// Which data one rank of a job reads.
struct rank_role {
  parallel_place place;
  batch_needs needs;  ///< a rank that needs no arrays needs no loader

  std::int64_t data_rank = 0;   ///< data-parallel rank: `rank` of the loader's options
  std::int64_t data_ranks = 1;  ///< data-parallel size: `world_size` of the loader's options
  std::int64_t held = 1;        ///< see `held_by_stage`: `held` of the loader's options
  context_slices slices;        ///< the rank's part of each row
};

/// Returns the role of a rank. Each rank that needs data reads it itself, so nothing is sent
/// between devices. The ranks of a tensor-parallel group get the same batches. They usually share a
/// machine, so one rank reads the data from storage and the others find it in the machine's page
/// cache. (In Megatron, the first rank of the group reads and broadcasts.) Each context-parallel
/// rank reads its own chunks.
///
///     void print(const millrace::loader::parallel_layout& layout) {
///       const millrace::loader::rank_role role = millrace::loader::role_of(layout, 17, 4096);
///       if (role.needs.any()) std::cout << role.data_rank << " of " << role.data_ranks << '\n';
///     }
///
/// @throws config_error  the rank or stage does not exist, or seq_len does not divide into chunks
MILLRACE_EXPORT rank_role role_of(const parallel_layout& layout, std::int64_t rank,
                                  std::int64_t seq_len, const pipeline_options& options = {});

}  // namespace millrace::loader
