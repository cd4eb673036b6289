// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/convert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using row_list = std::vector<packed_row>;

/// A document, and which of its tokens are to be predicted.
struct masked_document {
  std::vector<std::int64_t> tokens;
  std::vector<bool> mask;

  bool operator==(const masked_document&) const = default;
};

std::vector<masked_document> read_documents(const std::filesystem::path& prefix) {
  const indexed_dataset data(prefix, {.check = check_level::full});
  const auto mask = token_mask::find(data);
  if (!mask) throw error("there is no mask");
  mask->verify();
  std::vector<masked_document> all;
  std::uint64_t at = 0;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const token_view tokens = data.document_tokens(d);
    masked_document& document = all.emplace_back();
    for (std::int64_t i = 0; i < tokens.size(); ++i, ++at) {
      document.tokens.push_back(tokens[i]);
      document.mask.push_back(mask->bits()[at]);
    }
  }
  return all;
}

/// What Bridge trains on: from each token of a sequence but the last it predicts the next one, and
/// the mask at the place of the former says whether the loss counts.
std::vector<masked_document> sequences_of_rows(const row_list& from) {
  std::vector<masked_document> all;
  for (const packed_row& row : from) {
    for (std::size_t s = 0; s < row.starts.size(); ++s) {
      const auto begin = row.starts[s];
      const auto end =
          s + 1 < row.starts.size() ? row.starts[s + 1] : static_cast<std::int32_t>(row.ids.size());
      masked_document& document = all.emplace_back();
      for (std::int32_t i = begin; i < end; ++i) {
        document.tokens.push_back(row.ids[static_cast<std::size_t>(i)]);
        document.mask.push_back(i != begin && row.loss_mask[static_cast<std::size_t>(i) - 1] == 1);
      }
    }
  }
  return all;
}

packed_row random_row(std::mt19937_64& random, std::size_t longest, std::int32_t top) {
  packed_row row;
  for (std::size_t n = 1 + random() % longest; n != 0; --n) {
    row.ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(top)));
    row.loss_mask.push_back(static_cast<std::int32_t>(random() % 2));
  }
  row.starts.push_back(0);
  for (std::size_t n = random() % 6; n != 0; --n) {
    row.starts.push_back(static_cast<std::int32_t>(random() % row.ids.size()));
  }
  std::sort(row.starts.begin(), row.starts.end());
  return row;
}

/// Converts rows in memory, whose files exist only by their names.
class ConvertPackedRows : public testing::Test {
 protected:
  /// @return the path of the file
  std::filesystem::path add_file(const std::string& name, row_list content,
                                 std::vector<std::string> other_columns = {}) {
    const auto path = folder_ / name;
    test::write_text(path, name);
    files_[path] = std::move(content);
    other_columns_[path] = std::move(other_columns);
    return path;
  }

  convert_options options() {
    convert_options made;
    made.lossy = true;
    made.open_packed_rows = [this](const std::filesystem::path& path) {
      return open(files_.at(path), other_columns_.at(path));
    };
    return made;
  }

  conversion run(const std::vector<std::filesystem::path>& inputs, const convert_options& with) {
    return convert(inputs, folder_ / "out", with);
  }

  /// Whether anything was written under the prefix of `run`.
  bool has_output() const {
    for (const auto& each : std::filesystem::directory_iterator(folder_.path())) {
      if (each.path().filename().string().find("out") != std::string::npos) return true;
    }
    return false;
  }

  static packed_rows_file open(const row_list& content, std::vector<std::string> other_columns) {
    packed_rows_file file;
    for (const packed_row& row : content) file.tokens += row.ids.size();
    file.other_columns = std::move(other_columns);
    file.next_starts = [&content, at = std::size_t{0}](std::vector<std::int32_t>& starts) mutable {
      if (at == content.size()) return false;
      starts = content[at++].starts;
      return true;
    };
    file.next_row = [&content, at = std::size_t{0}](packed_row& row) mutable {
      if (at == content.size()) return false;
      row = content[at++];
      return true;
    };
    return file;
  }

  test::temp_folder folder_;
  std::map<std::filesystem::path, row_list> files_;
  std::map<std::filesystem::path, std::vector<std::string>> other_columns_;
};

TEST_F(ConvertPackedRows, MakesADocumentOfEachSequence) {
  const auto path = add_file(
      "a.parquet", {{.ids = {5, 6, 7, 2}, .loss_mask = {0, 1, 1, 0}, .starts = {0}},
                    {.ids = {300, 2, 8, 9, 2}, .loss_mask = {1, 0, 0, 1, 0}, .starts = {0, 2}}});
  const conversion done = run({path}, options());
  EXPECT_EQ(done.from, token_format::bridge);
  EXPECT_EQ(done.to, token_format::megatron);
  EXPECT_EQ(done.type, formats::dtype::int32);
  EXPECT_EQ(done.tokens, 9);
  EXPECT_EQ(done.documents, 3);
  EXPECT_EQ(done.sequences, 3);
  EXPECT_EQ(done.rows, 2);
  EXPECT_EQ(done.trained, 4);
  EXPECT_FALSE(done.ends_with_eod);
  EXPECT_EQ(read_documents(folder_ / "out"),
            (std::vector<masked_document>{{{5, 6, 7, 2}, {false, false, true, true}},
                                          {{300, 2}, {false, true}},
                                          {{8, 9, 2}, {false, false, true}}}));
}

// Bridge's older masks are 1 at the last token, too. Nothing follows it, so Bridge drops that
// entry.
TEST_F(ConvertPackedRows, IgnoresTheMaskOfTheLastTokenOfASequence) {
  const auto path = add_file(
      "a.parquet", {{.ids = {1, 2, 3, 4, 5}, .loss_mask = {0, 1, 1, 0, 1}, .starts = {0, 3}}});
  EXPECT_EQ(run({path}, options()).trained, 1);
  EXPECT_EQ(
      read_documents(folder_ / "out"),
      (std::vector<masked_document>{{{1, 2, 3}, {false, false, true}}, {{4, 5}, {false, false}}}));
}

TEST_F(ConvertPackedRows, KeepsEmptySequences) {
  const auto path =
      add_file("a.parquet", {{.ids = {1, 2}, .loss_mask = {1, 1}, .starts = {0, 0, 1, 1}}});
  const conversion done = run({path}, options());
  EXPECT_EQ(done.documents, 4);
  EXPECT_EQ(done.empty_documents, 2);
  EXPECT_EQ(done.sequences, 2);
  EXPECT_EQ(read_documents(folder_ / "out"),
            (std::vector<masked_document>{{}, {{1}, {false}}, {}, {{2}, {false}}}));
}

TEST_F(ConvertPackedRows, EqualsANaiveModel) {
  std::mt19937_64 random(test::seed(21));
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    const auto type = std::vector{formats::dtype::int32, formats::dtype::uint16,
                                  formats::dtype::int64, formats::dtype::uint8}[random() % 4];
    const std::int32_t top = type == formats::dtype::uint8 ? 256
                             : type == formats::dtype::uint16
                                 ? 65536
                                 : std::numeric_limits<std::int32_t>::max();
    std::vector<std::filesystem::path> inputs;
    row_list all;
    std::vector<std::int64_t> documents;
    for (std::size_t n = 1 + random() % 3; n != 0; --n) {
      row_list some;
      // Some files are larger than what is copied at once.
      for (std::size_t k = 1 + random() % 40; k != 0; --k) {
        some.push_back(random_row(random, random() % 3 == 0 ? 20'000 : 200, top));
      }
      all.insert(all.end(), some.begin(), some.end());
      documents.push_back(std::ssize(sequences_of_rows(some)));
      inputs.push_back(add_file(std::to_string(n) + ".parquet", some));
    }
    auto with = options();
    with.output_type = type;
    with.overwrite = true;
    const conversion done = run(inputs, with);
    EXPECT_EQ(done.type, type);
    EXPECT_EQ(done.rows, std::ssize(all));
    ASSERT_EQ(done.inputs.size(), inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      EXPECT_EQ(done.inputs[k].path, inputs[k].string());
      EXPECT_EQ(done.inputs[k].documents, documents[k]);
      EXPECT_EQ(done.inputs[k].bytes, std::filesystem::file_size(inputs[k]));
    }
    EXPECT_TRUE(read_documents(folder_ / "out") == sequences_of_rows(all));
  }
}

TEST_F(ConvertPackedRows, ListsWhatIsLost) {
  const auto single =
      add_file("single.parquet", {{.ids = {1, 2}, .loss_mask = {1, 0}, .starts = {0}}});
  const auto packed =
      add_file("packed.parquet", {{.ids = {1, 2}, .loss_mask = {1, 0}, .starts = {0, 1}}},
               {"source", "text"});
  auto with = options();
  with.lossy = false;
  EXPECT_THAT(
      test::config_refusal([&] {
        return run({single, packed}, with);
      }),
      HasSubstr("would be lost: the 2 rows into which 3 sequences are packed; each sequence "
                "becomes a document; the columns 'source', 'text', which Megatron-Bridge "
                "does not read; pass --lossy"));
  EXPECT_FALSE(has_output());
  EXPECT_THAT(run({single}, with).lost, IsEmpty());
  with.lossy = with.overwrite = true;
  EXPECT_THAT(run({single, packed}, with).lost,
              ElementsAre(HasSubstr("the 2 rows"), HasSubstr("'source'")));
}

TEST_F(ConvertPackedRows, AreRefusedIfTheyAreDamaged) {
  const packed_row good{.ids = {1, 2, 3}, .loss_mask = {1, 0, 1}, .starts = {0, 2}};
  const auto refusal_of = [&](const std::function<void(packed_row&)>& damage) {
    packed_row bad = good;
    damage(bad);
    bad.offset = 77;
    const auto path = add_file("a.parquet", {good, bad});
    try {
      (void)run({path}, options());
    } catch (const format_error& e) {
      EXPECT_EQ(e.path(), path);
      EXPECT_EQ(e.offset(), 77);
      EXPECT_FALSE(has_output());
      return e.problem();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal_of([](packed_row& row) { row = {}; }),
            "row 1: there are no ids, expected 1 or more");
  EXPECT_EQ(refusal_of([](packed_row& row) { row.loss_mask.pop_back(); }),
            "row 1: the loss mask has 2 entries, expected 3, one per id");
  EXPECT_EQ(refusal_of([](packed_row& row) { row.loss_mask.push_back(1); }),
            "row 1: the loss mask has 4 entries, expected 3, one per id");
  for (const std::int32_t value : {2, -1, 257}) {
    EXPECT_EQ(refusal_of([&](packed_row& row) { row.loss_mask[1] = value; }),
              "row 1: entry 1 of the loss mask is " + std::to_string(value) + ", expected 0 or 1");
  }
  EXPECT_EQ(refusal_of([](packed_row& row) { row.starts = {}; }),
            "row 1: the first sequence starts at no position, expected 0");
  EXPECT_EQ(refusal_of([](packed_row& row) {
              row.starts = {1, 2};
            }),
            "row 1: the first sequence starts at 1, expected 0");
  EXPECT_EQ(refusal_of([](packed_row& row) {
              row.starts = {-1, 2};
            }),
            "row 1: the first sequence starts at -1, expected 0");
  EXPECT_EQ(refusal_of([](packed_row& row) {
              row.starts = {0, 2, 1};
            }),
            "row 1: a sequence starts at 1, after one that starts at 2");
  EXPECT_EQ(refusal_of([](packed_row& row) {
              row.starts = {0, 3};
            }),
            "row 1: a sequence starts at 3, expected at most 2, the last of 3 ids");
  EXPECT_EQ(
      refusal_of([](packed_row& row) { row.ids[1] = -7; }),
      "row 1: id 1 is -7, but the output holds ids from 0 to 2147483647; nothing was written");
}

TEST_F(ConvertPackedRows, AreRefusedIfAnIdDoesNotFit) {
  const auto path =
      add_file("a.parquet", {{.ids = {65535, 65536}, .loss_mask = {1, 0}, .starts = {0}}});
  auto with = options();
  with.output_type = formats::dtype::uint16;
  try {
    run({path}, with);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("row 0: id 1 is 65536, but the output holds ids from 0 to 65535"));
  }
  EXPECT_FALSE(has_output());
}

TEST_F(ConvertPackedRows, SayWhetherAnEodEndsEverySequence) {
  const row_list all = {{.ids = {1, 9, 3, 9}, .loss_mask = {1, 1, 1, 1}, .starts = {0, 2, 2}}};
  auto with = options();
  with.overwrite = true;
  with.eod = 9;
  const auto path = add_file("a.parquet", all);
  EXPECT_TRUE(run({path}, with).ends_with_eod);
  files_.at(path)[0].ids[1] = 8;
  EXPECT_FALSE(run({path}, with).ends_with_eod);
}

TEST_F(ConvertPackedRows, HaveNoUseForSomeOptions) {
  const auto path = add_file("a.parquet", {{.ids = {1, 2}, .loss_mask = {1, 0}, .starts = {0}}});
  const auto refusal_of = [&](const std::function<void(convert_options&)>& change) {
    auto with = options();
    change(with);
    std::string refusal = test::config_refusal([&] { return run({path}, with); });
    EXPECT_FALSE(has_output());
    return refusal;
  };
  EXPECT_THAT(refusal_of([](auto& with) { with.to = token_format::nanoset; }),
              HasSubstr("convert them --to megatron first, and then the dataset --to nanoset"));
  EXPECT_THAT(refusal_of([](auto& with) { with.to = token_format::bridge; }),
              HasSubstr("packed rows are made from one dataset"));
  EXPECT_THAT(refusal_of([](auto& with) { with.open_packed_rows = {}; }),
              HasSubstr("convert_options::open_packed_rows is required"));
  const auto no_use = HasSubstr("--dtype, --bod-id and --boundaries do not apply");
  EXPECT_THAT(refusal_of([](auto& with) { with.type = formats::dtype::int32; }), no_use);
  EXPECT_THAT(refusal_of([](auto& with) { with.bod = 1; }), no_use);
  EXPECT_THAT(refusal_of([](auto& with) { with.boundaries = "ends"; }), no_use);
}

TEST_F(ConvertPackedRows, MustHaveARow) {
  const auto a = add_file("a.parquet", {});
  const auto b = add_file("b.parquet", {});
  EXPECT_EQ(test::config_refusal([&] { return run({a}, options()); }),
            a.string() + " has no packed row");
  EXPECT_EQ(test::config_refusal([&] {
              return run({a, b}, options());
            }),
            a.string() + " and the other inputs have no packed row");
  const auto c = add_file("c.parquet", {{.ids = {1, 2}, .loss_mask = {1, 0}, .starts = {0}}});
  EXPECT_EQ(run({a, c}, options()).documents, 1);
}

TEST_F(ConvertPackedRows, MustNotChangeMeanwhile) {
  const auto path = add_file("a.parquet", {{.ids = {1, 2}, .loss_mask = {1, 0}, .starts = {0}}});
  auto with = options();
  int opened = 0;
  with.open_packed_rows = [&](const std::filesystem::path& each) {
    if (++opened == 2) files_.at(each).push_back(files_.at(each).front());
    return open(files_.at(each), {});
  };
  try {
    run({path}, with);
    ADD_FAILURE() << "accepted";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("had 1 sequences, and now 2: a file changed"));
  }
  EXPECT_FALSE(has_output());
}

TEST_F(ConvertPackedRows, AreRecognized) {
  EXPECT_EQ(recognize(folder_ / "nowhere.parquet"), token_format::bridge);
  EXPECT_EQ(recognize(folder_ / "nowhere.idx.pq"), token_format::bridge);
  test::write_text(folder_ / "by_content", "PAR1...");
  EXPECT_EQ(recognize(folder_ / "by_content"), token_format::bridge);
  test::write_text(folder_ / "short", "PAR");
  EXPECT_EQ(recognize(folder_ / "short"), std::nullopt);
}

}  // namespace
}  // namespace millrace::dataset
