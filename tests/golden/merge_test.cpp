// SPDX-License-Identifier: Apache-2.0
#include "merge/merge.hpp"

#include <gtest/gtest.h>

#include <simdjson.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "golden/dataset/megatron_golden.hpp"
#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;

// The manifest lists the parts that Megatron's add_index merged. This test copies each part to a
// new name. The new names sort in the order of the list.
TEST(MergeGolden, GivesMegatronsBytes) {
  simdjson::dom::parser parser;
  const simdjson::dom::object manifest =
      parser.load(test::golden("megatron/manifest.json").string()).get_object();
  int merges = 0;
  for (const auto [name, how] : manifest) {
    simdjson::dom::array parts;
    if (how["parts"].get(parts) != simdjson::SUCCESS) continue;
    SCOPED_TRACE(std::string(name));
    ++merges;
    const test::temp_folder folder;
    fs::create_directory(folder / "parts");
    std::size_t number = 0;
    for (const std::string_view part : parts) {
      const std::string from = (test::golden("megatron") / part).string();
      const std::string to = (folder / "parts/part_").string() + std::to_string(number++);
      for (const char* suffix : {".bin", ".idx"}) fs::copy_file(from + suffix, to + suffix);
    }
    const merge_summary summary = merge({.input = folder / "parts",
                                         .output_prefix = folder / "merged",
                                         .multimodal = how["multimodal"].get_bool()});
    EXPECT_EQ(summary.prefixes.size(), number);
    for (const char* suffix : {".bin", ".idx"}) {
      EXPECT_EQ(test::read_text((folder / "merged").string() + suffix),
                test::read_text((test::golden("megatron") / name).string() + suffix))
          << suffix;
    }
  }
  EXPECT_EQ(merges, 3);
}

// Megatron's development branch merged three datasets. The second one is empty.
TEST(MergeGolden, GivesTheBytesOfTheDevelopmentBranch) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  fs::create_directory(folder / "parts");
  golden.write_files("idx_uint16_3docs", folder / "parts/part_0");
  golden.write_files("idx_empty", folder / "parts/part_1");
  golden.write_files("idx_uint16_3docs", folder / "parts/part_2");
  golden.write_files("merge_a_e_a", folder / "expected");
  (void)merge({.input = folder / "parts", .output_prefix = folder / "merged"});
  for (const char* suffix : {".bin", ".idx"}) {
    EXPECT_EQ(test::read_text((folder / "merged").string() + suffix),
              test::read_text((folder / "expected").string() + suffix))
        << suffix;
  }
}

}  // namespace
}  // namespace millrace::preprocess
