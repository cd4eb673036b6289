// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_description.hpp>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>

namespace millrace::dataset {

MILLRACE_INLINE python_json gpt_description::identifiers() const {
  python_json all = python_json::object();
  all.set("class", python_json::string("GPTDataset"));
  all.set("dataset_path", python_json::string(dataset_path));
  all.set("num_samples", num_samples ? python_json::integer(*num_samples) : python_json());
  all.set("index_split", python_json::string(name(part)));
  all.set("random_seed", python_json::integer(random_seed));
  all.set("sequence_length", python_json::integer(sequence_length));
  all.set("split", split ? python_json::string(*split) : python_json());
  all.set("split_matrix", split ? split_matrix(*split).json() : python_json());
  all.set("tokenizer", tokenizer);
  return all;
}

}  // namespace millrace::dataset
