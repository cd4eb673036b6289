// SPDX-License-Identifier: Apache-2.0
//
// Writes the cache folders of Megatron's GPTDatasets, as `inspect_dataset prepare-cache` does.
// Compares file names, types and split bounds with the entry `gpt` of megatron_golden.json.
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/python_json.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

template <class T>
std::string bytes_of(const std::vector<std::int64_t>& numbers) {
  std::string bytes;
  for (const std::int64_t number : numbers) {
    const auto narrow = static_cast<T>(number);
    EXPECT_EQ(static_cast<std::int64_t>(narrow), number);
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  return bytes;
}

/// Returns a file as numpy.save writes it: version 1.0, with spaces that pad the header to a
/// multiple of 64 bytes.
std::string npy_of(std::string_view dtype, const std::string& shape,
                   const std::vector<std::int64_t>& numbers) {
  const char* descr = dtype == "int32" ? "<i4" : dtype == "uint32" ? "<u4" : "<i8";
  std::string header =
      std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header +
         (dtype == "int32"    ? bytes_of<std::int32_t>(numbers)
          : dtype == "uint32" ? bytes_of<std::uint32_t>(numbers)
                              : bytes_of<std::int64_t>(numbers));
}

gpt_cache_options options_of(dom::element config, std::string_view description) {
  dom::parser parser;
  const dom::element parsed = parser.parse(simdjson::padded_string(description));
  gpt_cache_options options;
  options.folder = "cache";
  options.sequence_length = std::int64_t(config["S"]);
  options.random_seed = static_cast<std::uint32_t>(std::int64_t(config["seed"]));
  options.split = std::string(std::string_view(config["split"]));
  options.tokenizer = read_python_json(simdjson::minify(parsed["tokenizer"].value()));
  bool flag = true;
  if (config["extra"].get(flag) == simdjson::SUCCESS) options.add_extra_token = flag;
  if (config["drop"].get(flag) == simdjson::SUCCESS) {
    options.drop_last_partial_validation_sequence = flag;
  }
  return options;
}

void expect_files(const std::string& name, dom::element expected) {
  const auto file = [&](const char* what) { return test::read_text("cache/" + name + "-" + what); };
  const auto dtype = [&](std::size_t i) { return std::string_view(expected["dtypes"].at(i)); };
  const auto numbers = [&](const char* key) { return test::numbers(expected[key]); };
  EXPECT_EQ(file("description.txt"), std::string_view(expected["description"]));
  const auto documents = numbers("document_index");
  EXPECT_EQ(file("document_index.npy"),
            npy_of(dtype(0), std::to_string(documents.size()) + ",", documents));
  const auto samples = numbers("sample_index");
  EXPECT_EQ(file("sample_index.npy"),
            npy_of(dtype(1), std::to_string(samples.size() / 2) + ", 2", samples));
  const auto shuffle = numbers("shuffle_index");
  EXPECT_EQ(file("shuffle_index.npy"),
            npy_of(dtype(2), std::to_string(shuffle.size()) + ",", shuffle));
}

void expect_bounds(const split_matrix& split, dom::element expected) {
  dom::parser parser;
  const std::string text = split.json().dump();
  const dom::element ours = parser.parse(text);
  ASSERT_EQ(dom::array(ours).size(), dom::array(expected).size());
  for (std::size_t part = 0; part < dom::array(expected).size(); ++part) {
    ASSERT_EQ(ours.at(part).is_null(), expected.at(part).is_null());
    if (expected.at(part).is_null()) continue;
    for (std::size_t end = 0; end < 2; ++end) {
      EXPECT_EQ(double(ours.at(part).at(end)), double(expected.at(part).at(end)));
    }
  }
}

TEST(MegatronsCaches, AreMadeFileByFile) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  int folders = 0;
  int parts = 0;
  for (const dom::element config : dom::array(golden["gpt"])) {
    SCOPED_TRACE(std::string(std::string_view(config["name"])));
    const test::temp_folder folder;
    test::megatron_golden::write_corpora(folder.path());
    const test::inside here(folder.path());  // file names depend on the spelling of paths
    expect_bounds(split_matrix{std::string_view(config["split"])}, config["split_matrix"]);
    for (const split_part part : split_parts) {
      dom::element expected;
      const dom::element size = config["sizes"].at(static_cast<std::size_t>(part));
      const bool found =
          config["splits"][std::string(name(part))].get(expected) == simdjson::SUCCESS &&
          !expected.is_null();
      if (!found) continue;
      const std::string_view description(expected["description"]);
      std::optional<std::int64_t> samples;
      if (!size.is_null()) samples = std::int64_t(size);
      const auto made = prepare_gpt_cache(options_of(config, description), "corpus", part, samples);
      ASSERT_TRUE(made && made->built);
      const std::string name = made->description.cache_name();
      EXPECT_EQ(name.substr(0, 32), std::string_view(expected["md5"]));
      expect_files(name, expected);
      ++parts;
    }
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator("cache")) {
      files.push_back(file.path().filename().string());
    }
    std::ranges::sort(files);
    for (const auto [part, expected] : dom::object(config["splits"])) {
      dom::array listed;
      if (expected.is_null() || expected["files"].get(listed) != simdjson::SUCCESS) continue;
      std::vector<std::string> names;
      for (const std::string_view each : listed) names.emplace_back(each);
      EXPECT_EQ(files, names) << part;
      ++folders;
    }
  }
  EXPECT_EQ(parts, 12);
  EXPECT_EQ(folders, 11);
}

}  // namespace
}  // namespace millrace::dataset
