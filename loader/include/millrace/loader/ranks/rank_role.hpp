// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/export.hpp>
#include <millrace/loader/ranks/context_slices.hpp>
#include <millrace/loader/ranks/parallel_layout.hpp>

namespace millrace::loader {

/// Which arrays of a micro-batch a rank's part of the model takes.
struct batch_needs {
  bool tokens = false;         ///< and position ids: for the embedding
  bool labels = false;         ///< and the loss mask: for the loss
  bool document_ends = false;  ///< `cu_seqlens`: for attention

  bool any() const noexcept { return tokens || labels || document_ends; }
  friend bool operator==(const batch_needs&, const batch_needs&) = default;
};

/// Where parts of the model lie that take data.
struct pipeline_options {
  /// Attention goes by document ends (packed rows, masking between documents): all stages have it.
  bool document_ends = false;
  /// Multi-token prediction: stages whose layers predict further tokens; they take tokens and
  /// labels. Megatron's own place for them is the last stage.
  std::vector<std::int64_t> mtp_stages{};
};

/// What a pipeline stage takes: the first tokens, the last labels, one that is both all of it.
///
/// Under interleaved schedules (virtual pipelines) a stage has several chunks of the model, of
/// which the first stage's first takes tokens and the last stage's last labels: the sum is the
/// same. All chunks of a stage see the same micro-batches, so it is enough to read them once a
/// stage, where Megatron gives each chunk an iterator of its own.
///
/// @throws config_error  there is no such stage
MILLRACE_EXPORT batch_needs needs_of_stage(std::int64_t stage, std::int64_t stages,
                                           const pipeline_options& options = {});

/// How the tensor-parallel ranks of a group, which all take the same, come by their batches.
enum class tensor_sharing : std::uint8_t {
  broadcast,   ///< the first reads, and sends its slot, u16 or i32 as it lies there, to the others
  each_reads,  ///< all read: no traffic between devices; the page cache of a node serves all but
               ///< one
};

/// What one rank of a job does about data.
struct rank_role {
  parallel_place place;
  batch_needs needs;

  std::int64_t data_rank = 0;   ///< the `rank` and
  std::int64_t data_ranks = 1;  ///< `world_size` of its loader's options: those of data parallelism
  context_slices slices;        ///< what it has of each row

  bool reads = false;                     ///< it has a loader
  std::int64_t source = -1;               ///< the rank that it receives batches from, or -1
  std::vector<std::int64_t> receivers{};  ///< the ranks that it sends its batches to
};

/// The role of a rank. Ranks of one tensor-parallel group share their batches; each pipeline stage
/// that takes something reads for itself, as Megatron has it, and so does each context-parallel
/// rank, its own chunks; what is left of the world takes nothing.
///
/// @throws config_error  there is no such rank or stage, or seq_len does not divide into chunks
MILLRACE_EXPORT rank_role role_of(const parallel_layout& layout, std::int64_t rank,
                                  std::int64_t seq_len,
                                  tensor_sharing sharing = tensor_sharing::broadcast,
                                  const pipeline_options& options = {});

}  // namespace millrace::loader
