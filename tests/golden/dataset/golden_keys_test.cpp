// SPDX-License-Identifier: Apache-2.0
//
// Tests that every key of megatron_golden.json is read by a golden test. `readers` lists the keys
// that each test file reads.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

/// The keys that each test file reads, as paths. In a path, `*` stands for the name of a split part
/// or for a seed.
const std::map<std::string, std::vector<std::string>> readers = {
    {"blend_golden_test.cpp",
     {"blend[].dataset_index", "blend[].dataset_sample_index", "blend[].exhaustive",
      "blend[].normalized_once", "blend[].normalized_twice", "blend[].size", "blend[].weights"}},
    {"blended_golden_test.cpp",
     {"blended[].blend", "blended[].req", "blended[].split", "blended[].splits.*.dataset_index",
      "blended[].splits.*.dataset_sample_index", "blended[].splits.*.description",
      "blended[].splits.*.first3", "blended[].splits.*.len", "blended[].splits.*.md5",
      "blended[].splits.*.mid_len", "blended[].splits.*.mid_num_samples", "blended[].splits.*.size",
      "blended[].splits.*.weights"}},
    {"corpus_golden_test.cpp",
     {"corpus.D", "corpus.rule", "corpus.sizes", "idx_empty.bin", "idx_empty.docs", "idx_empty.idx",
      "idx_int32.bin", "idx_int32.docs", "idx_int32.idx", "idx_mm.bin", "idx_mm.docs", "idx_mm.idx",
      "idx_mm.modes", "idx_uint16_3docs.bin", "idx_uint16_3docs.docs", "idx_uint16_3docs.idx"}},
    {"gpt_cache_golden_test.cpp",
     {"gpt[].S", "gpt[].drop", "gpt[].extra", "gpt[].name", "gpt[].seed", "gpt[].sizes",
      "gpt[].split", "gpt[].split_matrix", "gpt[].splits.*.description",
      "gpt[].splits.*.document_index", "gpt[].splits.*.dtypes", "gpt[].splits.*.files",
      "gpt[].splits.*.md5", "gpt[].splits.*.sample_index", "gpt[].splits.*.shuffle_index"}},
    {"gpt_index_test.cpp", {"gpt[].splits.*.indices", "gpt[].splits.*.len"}},
    {"../merge_test.cpp", {"merge_a_e_a.bin", "merge_a_e_a.idx"}},
    {"random_state_golden_test.cpp",
     {"randomstate.*.arange100000_int64_first5", "randomstate.*.first4_uint32",
      "randomstate.*.first_two_shuffles", "randomstate.*.md5_le_int64"}},
    {"sampler_golden_test.cpp",
     {"samplers[].consumed", "samplers[].data_sharding", "samplers[].dp", "samplers[].drop_last",
      "samplers[].gbs", "samplers[].kind", "samplers[].lens", "samplers[].mbs", "samplers[].ranks",
      "samplers[].total"}},
    {"samples_test.cpp",  // also read by ../loader_megatron_test.cpp
     {"gpt[].splits.*.last.labels", "gpt[].splits.*.last.loss_mask",
      "gpt[].splits.*.last.position_ids", "gpt[].splits.*.last.tokens",
      "gpt[].splits.*.sample0.labels", "gpt[].splits.*.sample0.loss_mask",
      "gpt[].splits.*.sample0.position_ids", "gpt[].splits.*.sample0.tokens",
      "gpt[].splits.*.sample0_attention_mask_rows"}},
};

/// Keys of data that millrace does not produce: samples of sentences (for BERT and T5), and the
/// data of --mock-data.
const std::set<std::string, std::less<>> without_reader = {"build_mapping", "mock_gpt"};

bool is_list_of_objects(dom::element element) {
  if (!element.is_array() || dom::array(element).size() == 0) return false;
  for (const dom::element each : dom::array(element)) {
    if (!each.is_object()) return false;
  }
  return true;
}

void collect(dom::element element, const std::string& path, std::set<std::string>& paths) {
  if (is_list_of_objects(element)) {
    for (const dom::element each : dom::array(element)) collect(each, path + "[]", paths);
  } else if (element.is_object()) {
    for (const auto [key, value] : dom::object(element)) {
      if (path.empty() && without_reader.contains(key)) continue;
      const bool varies = key == "train" || key == "valid" || key == "test" ||
                          key.find_first_not_of("0123456789") == std::string_view::npos;
      std::string below = path;
      if (!below.empty()) below += '.';
      below += varies ? "*" : key;
      collect(value, below, paths);
    }
  } else if (!path.ends_with(".*")) {  // a split part may be null
    paths.insert(path);
  }
}

TEST(MegatronsGoldens, AreReadToTheLastKey) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  std::set<std::string> found;
  collect(golden.all(), "", found);
  std::set<std::string> read;
  for (const auto& [file, paths] : readers) {
    const std::string text = test::read_text(test::golden("dataset") / file);
    for (const std::string& path : paths) {
      read.insert(path);
      // The test file must contain the key itself. It may contain only the top-level key if a
      // helper such as megatron_golden::write_files reads the rest of the path.
      const std::string key = path.substr(path.find_last_of('.') + 1);
      const std::string top = path.substr(0, path.find_first_of("[."));
      EXPECT_TRUE(text.find('"' + key + '"') != std::string::npos ||
                  text.find('"' + top + '"') != std::string::npos)
          << file << " does not name " << path;
    }
  }
  EXPECT_EQ(found, read);
}

}  // namespace
}  // namespace millrace::dataset
