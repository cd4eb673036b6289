// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <millrace/dataset/detail/sample/field_options.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>

namespace millrace::python {

namespace nb = nanobind;

/// The arrays of a sample or a batch, and the keys that they have in a dict.
struct field_names {
  bool tokens = false;
  bool labels = false;
  bool loss_mask = false;
  bool position_ids = false;
  bool cu_seqlens = false;
  bool cu_seqlens_padded = false;
  bool max_seqlen = false;
  /// True for Hugging Face's convention: the key of tokens is `input_ids`, and `labels` are the
  /// input ids themselves, not shifted, with -100 where the loss does not count.
  bool hugging_face = false;

  const char* key_of_tokens() const noexcept { return hugging_face ? "input_ids" : "tokens"; }

  /// The arrays to make on the host for these.
  loader::host_fields host() const noexcept {
    return {.tokens = tokens || (labels && hugging_face),
            .labels = labels && !hugging_face,
            .loss_mask = loss_mask || (labels && hugging_face),
            .position_ids = position_ids,
            .cu_seqlens = cu_seqlens || (max_seqlen && !cu_seqlens_padded),
            .cu_seqlens_padded = cu_seqlens_padded};
  }
};

/// @param fields  names of fields, as Megatron calls them
/// @param names   "megatron" or "hf"
/// @throws config_error  a name is unknown or appears twice
field_names field_names_of(const std::vector<std::string>& fields, const std::string& names);

/// Overwrites `labels` [rows, seq_len] with Hugging Face's: the input ids, and -100 where the loss
/// does not count. The loss of position i is that of predicting token i + 1, so it is
/// `loss_mask[i]` that says whether the label at i + 1 counts. Position 0 is never predicted.
template <class Id>
void put_hugging_face_labels(const Id* tokens, const float* loss_mask, std::int64_t rows,
                             std::int64_t seq_len, Id* labels) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * seq_len;
    labels[row] = tokens[row];
    for (std::int64_t i = 1; i < seq_len; ++i) {
      labels[row + i] = loss_mask[row + i - 1] == 0 ? Id{-100} : tokens[row + i];
    }
  }
}

/// @throws config_error  Hugging Face's labels cannot be made of what this rank has of its rows
inline void refuse_cut_labels(const dataset::run& run, std::int64_t context_parallel) {
  if (context_parallel > 1) {
    throw config_error(
        "names='hf' with labels is for whole rows, and context_parallel cuts them: the label of "
        "the first token of a chunk needs the token before the chunk. Use names='megatron', whose "
        "labels are shifted already");
  }
  if (run.last_token_as_label()) {
    throw config_error(
        "names='hf' with labels takes labels from the tokens, but with last_token_as_label, the "
        "last label of a document is not among them. Use names='megatron', whose labels are "
        "shifted already");
  }
}

/// What MegatronRun and InstantRun share, and what a Loader takes.
struct run_handle {
  std::shared_ptr<const dataset::run> order;
  dataset::field_options rules;
  std::optional<std::int64_t> samples;  ///< `len()`; nothing if the run has no end
};

}  // namespace millrace::python
