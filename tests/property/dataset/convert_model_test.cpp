// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/convert.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;
using documents = std::vector<std::vector<std::int64_t>>;
using paths = std::vector<std::filesystem::path>;

constexpr std::int64_t eod = 9;

/// Documents of 0 to 3 chunks of copied tokens, so that some are longer than a chunk of 2^18 bytes.
documents draw_documents(std::mt19937_64& random, std::int64_t top, bool all_marked) {
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  documents drawn(static_cast<std::size_t>(below(30)));
  for (auto& document : drawn) {
    const std::int64_t length = below(20) == 0 ? below(400'000) : below(5) == 0 ? 0 : below(50);
    for (std::int64_t i = 0; i < length; ++i) {
      std::int64_t token = below(below(2) == 0 ? 12 : top + 1);
      if (all_marked && token == eod) token = eod + 1;
      document.push_back(token);
    }
    if (all_marked && !document.empty()) document.back() = eod;
  }
  return drawn;
}

template <class T>
void write_as(const std::filesystem::path& prefix, const documents& from) {
  test::documents_of<T> all;
  for (const auto& document : from) {
    all.emplace_back();
    if (!document.empty()) all.back().emplace_back(document.begin(), document.end());
  }
  test::write_dataset<T>(prefix, all);
}

documents read_dataset(const std::filesystem::path& prefix) {
  const indexed_dataset data(prefix, {.check = check_level::full});
  documents all;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const token_view tokens = data.document_tokens(d);
    all.emplace_back();
    for (std::int64_t i = 0; i < tokens.size(); ++i) all.back().push_back(tokens[i]);
  }
  return all;
}

documents without_empty(documents all) {
  std::erase_if(all, [](const auto& document) { return document.empty(); });
  return all;
}

std::vector<std::int64_t> joined(const documents& all) {
  std::vector<std::int64_t> tokens;
  for (const auto& document : all) tokens.insert(tokens.end(), document.begin(), document.end());
  return tokens;
}

/// The tokens of an array, read one at a time.
template <class T>
std::vector<std::int64_t> read_array(const std::filesystem::path& path, std::size_t begin = 0) {
  const std::string bytes = test::read_text(path);
  std::vector<std::int64_t> tokens;
  for (std::size_t at = begin; at < bytes.size(); at += sizeof(T)) {
    T token;
    std::memcpy(&token, bytes.data() + at, sizeof(T));
    tokens.push_back(static_cast<std::int64_t>(token));
  }
  return tokens;
}

class ConvertModel : public testing::Test {
 protected:
  convert_options with(token_format to, std::optional<token_format> from = std::nullopt) const {
    convert_options options;
    options.from = from;
    options.to = to;
    options.overwrite = true;
    options.lossy = true;
    options.open_text = [](const std::filesystem::path& path) -> std::unique_ptr<std::istream> {
      return std::make_unique<std::ifstream>(path, std::ios::binary);
    };
    options.gzip = [](std::string_view text, bool, std::string& out) { out += text; };
    return options;
  }
  conversion run(const paths& from, const char* to, const convert_options& options) const {
    return convert(from, folder_ / to, options);
  }

  test::temp_folder folder_;
  std::mt19937_64 random_{test::seed(20)};
};

TEST_F(ConvertModel, RoundTripsKeepAllTokensAndDocuments) {
  std::int64_t tokens = 0;
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    const bool is_wide = random_() % 2 == 0;
    const documents all = draw_documents(random_, is_wide ? 2147483647 : 65535, true);
    const auto source = folder_ / "source";
    is_wide ? write_as<std::int32_t>(source, all) : write_as<std::uint16_t>(source, all);
    const auto flat = joined(all);
    tokens += static_cast<std::int64_t>(flat.size());
    const bool has_mask = random_() % 2 == 0;
    std::filesystem::remove(folder_ / "source.mask");
    if (has_mask) test::write_odd_mask(source);
    const auto expect_mask = [&](const char* name) {
      EXPECT_EQ(std::filesystem::exists(folder_ / name), has_mask) << name;
      if (!has_mask) return;
      std::vector<std::int64_t> odd;
      for (const std::int64_t token : flat) odd.push_back(token % 2);
      EXPECT_EQ(read_array<std::uint8_t>(folder_ / name), odd) << name;
    };
    const auto array = [&](const char* name, std::size_t begin = 0) {
      return is_wide ? read_array<std::uint32_t>(folder_ / name, begin)
                     : read_array<std::uint16_t>(folder_ / name, begin);
    };

    const conversion ds = run({source}, "a", with(token_format::nanoset));
    EXPECT_EQ(ds.documents, static_cast<std::int64_t>(all.size()));
    EXPECT_EQ(array("a.ds"), flat);
    expect_mask("a.ds.loss");
    EXPECT_EQ(run({folder_ / "a.ds"}, "b", with(token_format::megatron)).documents, ds.documents);
    EXPECT_EQ(read_dataset(folder_ / "b"), all);
    for (const char* suffix : {".bin", ".idx"}) {
      EXPECT_EQ(test::read_bytes(test::suffixed(folder_ / "b", suffix)),
                test::read_bytes(test::suffixed(source, suffix)));
    }
    EXPECT_TRUE(verify_sums(folder_ / "b", {}).has_value());
    if (has_mask) test::expect_odd_mask(folder_ / "b");

    run({source}, "a", with(token_format::olmo));
    EXPECT_EQ(array("a.npy"), flat);
    expect_mask("labels_mask_a.npy");
    auto from_olmo = with(token_format::megatron, token_format::olmo);
    from_olmo.type = is_wide ? formats::dtype::int32 : formats::dtype::uint16;
    const conversion olmo = run({folder_ / "a.npy"}, "b", from_olmo);
    EXPECT_EQ(read_dataset(folder_ / "b"), without_empty(all));
    EXPECT_EQ(std::filesystem::exists(folder_ / "b.mask"), has_mask);
    if (has_mask) test::expect_odd_mask(folder_ / "b");
    EXPECT_EQ(olmo.mask_root.empty(), !has_mask);

    auto to_llm_c = with(token_format::llm_c);
    to_llm_c.eod = eod;
    to_llm_c.shard_tokens = 1 + static_cast<std::int64_t>(flat.size() / (1 + random_() % 5));
    const conversion shards = run({source}, "s", to_llm_c);
    EXPECT_EQ(testing::Matches(testing::Contains(HasSubstr("the mask")))(shards.lost), has_mask);
    EXPECT_THAT(shards.lost, testing::Each(testing::Not(HasSubstr("where"))));
    std::vector<std::int64_t> found;
    for (const auto& file : shards.files) {
      const auto part = array(file.filename().c_str(), 1024);
      EXPECT_LE(static_cast<std::int64_t>(part.size()), to_llm_c.shard_tokens);
      found.insert(found.end(), part.begin(), part.end());
    }
    EXPECT_EQ(found, flat);
    auto from_llm_c = with(token_format::megatron);
    from_llm_c.eod = eod;
    const conversion back = run(shards.files, "b", from_llm_c);
    EXPECT_EQ(read_dataset(folder_ / "b"), without_empty(all));
    EXPECT_EQ(back.ends_with_eod, !flat.empty() || back.documents == 0);
    std::int64_t ends = 0;
    for (const converted_input& input : back.inputs) ends += input.documents;
    EXPECT_EQ(ends, back.documents);
    for (const auto& file : shards.files) std::filesystem::remove(file);

    if (is_wide) continue;
    auto to_nanogpt = with(token_format::nanogpt);
    run({source}, "n", to_nanogpt);
    EXPECT_EQ(array("n.bin"), flat);
  }
  EXPECT_GT(tokens, 100'000);
}

TEST_F(ConvertModel, MarksDivideDocumentsAsANaiveLoopDoes) {
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const auto flat = joined(draw_documents(random_, 65535, false));
    const std::vector<std::uint16_t> tokens(flat.begin(), flat.end());
    test::write_bytes(folder_ / "raw.bin", std::as_bytes(std::span(tokens)));
    auto options = with(token_format::megatron, token_format::nanogpt);
    options.type = formats::dtype::uint16;
    const bool begins = i % 2 == 0;
    (begins ? options.bod : options.eod) = eod;
    documents wanted;
    bool is_open = false;
    for (const std::int64_t token : flat) {
      if (!is_open || (begins && token == eod)) wanted.emplace_back();
      wanted.back().push_back(token);
      is_open = begins || token != eod;
    }
    const conversion done = run({folder_ / "raw.bin"}, "made", options);
    EXPECT_EQ(read_dataset(folder_ / "made"), wanted);
    EXPECT_EQ(done.documents, static_cast<std::int64_t>(wanted.size()));
    EXPECT_EQ(done.ends_with_eod, !begins && (flat.empty() || flat.back() == eod));
  }
}

TEST_F(ConvertModel, TellsWhichDocumentsNoMarkDivides) {
  int lossless = 0;
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const documents all = draw_documents(random_, 65535, i % 2 == 0);
    write_as<std::uint16_t>(folder_ / "source", all);
    std::int64_t unmarked = 0;
    std::int64_t inside = 0;
    const documents full = without_empty(all);
    for (std::size_t d = 0; d < full.size(); ++d) {
      const auto& document = full[d];
      unmarked += d + 1 < full.size() && document.back() != eod;
      inside += std::count(document.begin(), document.end() - 1, eod);
    }
    auto options = with(token_format::nanogpt);
    options.eod = eod;
    std::string lost;
    for (const auto& each : run({folder_ / "source"}, "n", options).lost) lost += each + '\n';
    EXPECT_EQ((lost.find("where ") != lost.npos), unmarked != 0) << lost;
    EXPECT_EQ(lost.find("inside them") != lost.npos, inside != 0) << lost;
    const auto named = [&](const char* word, std::int64_t count, const char* what) {
      if (count == 0) return;
      EXPECT_THAT(lost, HasSubstr(word + std::to_string(count) + what));
    };
    named("where ", unmarked, unmarked == 1 ? " document of" : " documents of");
    named("after ", inside, inside == 1 ? " token of id 9" : " tokens of id 9");
    lossless += lost.empty();
    options.lossy = false;
    std::filesystem::remove(folder_ / "n.bin");
    if (lost.empty()) {
      run({folder_ / "source"}, "n", options);
    } else {
      EXPECT_THROW(run({folder_ / "source"}, "n", options), config_error);
      EXPECT_FALSE(std::filesystem::exists(folder_ / "n.bin"));
      EXPECT_FALSE(std::filesystem::exists(folder_ / "n.bin.partial"));
    }
  }
  EXPECT_GT(lossless, 0);
}

TEST_F(ConvertModel, ChangesTypesExactlyOrNamesTheToken) {
  const auto check = [&]<class From>(From) {
    for (const auto to : {formats::dtype::uint8, formats::dtype::int8, formats::dtype::int16,
                          formats::dtype::uint16, formats::dtype::int32, formats::dtype::int64}) {
      formats::with_type(to, [&]<class To>(To) {
        if constexpr (std::is_integral_v<To>) {
          const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(
              std::numeric_limits<From>::max(), std::numeric_limits<To>::max()));
          documents all = {std::vector<std::int64_t>(300'001, most), {0, most}};
          write_as<From>(folder_ / "source", all);
          auto options = with(token_format::megatron);
          options.output_type = to;
          run({folder_ / "source"}, "made", options);
          EXPECT_EQ(read_dataset(folder_ / "made"), all);
          EXPECT_EQ(indexed_dataset(folder_ / "made").type(), to);

          for (const auto other :
               {std::numeric_limits<From>::max(), std::numeric_limits<From>::min()}) {
            const auto value = static_cast<std::int64_t>(other);
            all[0][300'000] = value;
            write_as<From>(folder_ / "source", all);
            if (std::in_range<To>(value)) {
              run({folder_ / "source"}, "made", options);
              EXPECT_EQ(read_dataset(folder_ / "made"), all);
              continue;
            }
            try {
              run({folder_ / "source"}, "made", options);
              ADD_FAILURE() << "accepted " << value;
            } catch (const format_error& e) {
              EXPECT_THAT(e.what(), HasSubstr("token 300000 is " + std::to_string(value)));
              EXPECT_EQ(e.offset(), 300'000 * sizeof(From));
            }
          }
        }
      });
    }
  };
  check(std::uint8_t{});
  check(std::int8_t{});
  check(std::int16_t{});
  check(std::uint16_t{});
  check(std::int32_t{});
  check(std::int64_t{});
}

TEST_F(ConvertModel, ADatasetKeepsItsSequencesAndModes) {
  const std::vector<std::int8_t> modes = {0, 1, 2, 3};
  test::write_dataset<std::uint16_t>(folder_ / "source", {{{1, 2}, {}}, {}, {{3}, {4, 5}}}, modes);
  run({folder_ / "source"}, "made", with(token_format::megatron));
  for (const char* suffix : {".bin", ".idx"}) {
    EXPECT_EQ(test::read_bytes(test::suffixed(folder_ / "made", suffix)),
              test::read_bytes(test::suffixed(folder_ / "source", suffix)));
  }
  const auto lost = run({folder_ / "source"}, "a", with(token_format::nanoset)).lost;
  EXPECT_THAT(lost, testing::ElementsAre(HasSubstr("sequences inside 2 documents"),
                                         HasSubstr("modes of sequences")));
}

TEST_F(ConvertModel, BoundariesComeFromATextFile) {
  const std::vector<std::uint16_t> tokens = {1, 2, 3, 4, 5};
  test::write_bytes(folder_ / "raw.bin", std::as_bytes(std::span(tokens)));
  auto options = with(token_format::megatron, token_format::nanogpt);
  options.type = formats::dtype::uint16;
  options.boundaries = folder_ / "ends";
  for (const char* text : {"2\n2\n5\n", "0,2\r\n2,2\r\n2,5\r\n", "2\n2,2,more\n5"}) {
    test::write_text(folder_ / "ends", text);
    run({folder_ / "raw.bin"}, "made", options);
    EXPECT_EQ(read_dataset(folder_ / "made"), (documents{{1, 2}, {}, {3, 4, 5}})) << text;
  }
  for (const auto& [text, what] :
       {std::pair("2\n1\n", "line 2 ends a document at token 1"),
        std::pair("2\n6\n", "expected 2 to 5"),
        std::pair("2\n", "the tokens from 2 to 5 belong to no document"),
        std::pair("0,2\n3,5\n", "line 2 begins a document at token 3, expected 2"),
        std::pair("2\n\n5\n", "line 2 is '', expected END or BEGIN,END")}) {
    test::write_text(folder_ / "ends", text);
    try {
      run({folder_ / "raw.bin"}, "refused", options);
      ADD_FAILURE() << "accepted " << text;
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(what));
      EXPECT_EQ(e.path(), folder_ / "ends");
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused.bin"));
  }
}

TEST_F(ConvertModel, NeverWritesOverAnInput) {
  write_as<std::uint16_t>(folder_ / "a", {{1, 2, eod}, {4}});
  const auto before = test::read_bytes(folder_ / "a.bin");
  auto options = with(token_format::nanogpt);
  EXPECT_THROW(run({folder_ / "a"}, "a", options), config_error);
  EXPECT_THROW(run({folder_ / "a"}, "a", with(token_format::megatron)), config_error);
  run({folder_ / "a"}, "n", options);
  options = with(token_format::llm_c, token_format::nanogpt);
  options.type = formats::dtype::uint16;
  EXPECT_THROW(run({folder_ / "n.bin"}, "n", options), config_error);
  options.overwrite = false;
  test::write_text(folder_ / "there.bin", "x");
  EXPECT_THROW(run({folder_ / "n.bin"}, "there", options), config_error);
  EXPECT_EQ(test::read_text(folder_ / "there.bin"), "x");
  EXPECT_EQ(test::read_bytes(folder_ / "a.bin"), before);
}

}  // namespace
}  // namespace millrace::dataset
