// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/document_search.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using documents = test::documents_of<std::uint16_t>;

documents random_documents(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  documents out(count);
  for (auto& document : out) {
    document.resize(random() % 4 == 0 ? random() % 3 : 1);
    for (auto& sequence : document) {
      sequence.resize(random() % 5 == 0 ? 0 : random() % (random() % 50 == 0 ? 900 : 12));
    }
  }
  return out;
}

class DocumentSearch : public testing::Test {
 protected:
  std::filesystem::path stored(const documents& content) {
    test::write_dataset<std::uint16_t>(folder_ / "data", content);
    return folder_ / "data";
  }
  void overwrite(std::uint64_t offset, std::int64_t value) {
    const io::unique_fd fd(::open((folder_ / "data.idx").c_str(), O_WRONLY | O_CLOEXEC));
    io::pwrite_all(fd, std::as_bytes(std::span(&value, 1)), offset, "data.idx");
  }
  template <class Work>
  static std::string fault(Work&& work) {
    try {
      work();
    } catch (const format_error& e) {
      return e.what();
    }
    return "none";
  }
  test::temp_folder folder_;
};

/// Compares the search with a walk over all sequences. Tries every range of several lengths.
void expect_as_naive(const document_search& search, const documents& content) {
  std::vector<piece> tokens;  // one piece per token
  std::vector<std::int64_t> document_of;
  for (std::size_t d = 0; d < content.size(); ++d) {
    for (const auto& sequence : content[d]) {
      const auto number = static_cast<std::int64_t>(document_of.size());
      document_of.push_back(static_cast<std::int64_t>(d));
      for (std::size_t t = 0; t < sequence.size(); ++t) {
        tokens.push_back({number, static_cast<std::int64_t>(t), 1});
      }
    }
  }
  const auto count = static_cast<std::int64_t>(tokens.size());
  ASSERT_EQ(search.columns().token_count(), count);
  for (const std::int64_t length : {0, 1, 7, 100, 1500}) {
    for (std::int64_t first = 0; first + length <= count; first += 1 + length / 9) {
      std::vector<piece> expected;
      for (std::int64_t i = first; i < first + length; ++i) {
        const piece& token = tokens[static_cast<std::size_t>(i)];
        if (!expected.empty() && expected.back().sequence == token.sequence) {
          ++expected.back().tokens;
        } else {
          expected.push_back(token);
        }
      }
      std::vector<piece> found;
      search.pieces(first, length, found);
      ASSERT_EQ(found, expected) << first << " + " << length;
    }
  }
  for (std::size_t s = 0; s < document_of.size(); ++s) {
    ASSERT_EQ(search.document_of(static_cast<std::int64_t>(s)), document_of[s]) << s;
  }
}

TEST_F(DocumentSearch, FindsWhatAWalkFinds) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{10}, std::size_t{3000}}) {
    const documents content = random_documents(count, count);
    const auto prefix = stored(content);
    expect_as_naive(document_search(index_columns(prefix)), content);
  }
}

// If the file system refuses mmap, the search reads the file and gives the same results.
TEST_F(DocumentSearch, FindsTheSameWithoutAMap) {
  const documents content = random_documents(300, 7);
  const document_search search(index_columns(stored(content), index_access::pread));
  EXPECT_FALSE(search.columns().is_mapped());
  expect_as_naive(search, content);
}

TEST_F(DocumentSearch, WorksOnAnIndexThatIsMappedAlready) {
  const documents content = random_documents(300, 8);
  const indexed_dataset data(stored(content));
  expect_as_naive(document_search(index_columns(data)), content);
}

TEST_F(DocumentSearch, PassesOverManyEmptySequences) {
  documents content = {{{1, 2}}};
  content.resize(50'000, {{}});
  content.push_back({{3, 4}});
  const document_search search(index_columns(stored(content)));
  std::vector<piece> found;
  search.pieces(1, 2, found);
  EXPECT_THAT(found, ElementsAre(piece{0, 1, 1}, piece{50'000, 0, 1}));
}

TEST_F(DocumentSearch, MayBeUsedByManyThreadsAtOnce) {
  const documents content = random_documents(40'000, 9);  // enough to fill the top level
  const document_search search(index_columns(stored(content)));
  const document_search other(index_columns(folder_ / "data"));
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 5000; ++i) {
        const auto token = static_cast<std::int64_t>(
            random() % static_cast<std::uint64_t>(search.columns().token_count()));
        EXPECT_EQ(search.sequence_of(token), other.sequence_of(token));
      }
    });
  }
}

TEST_F(DocumentSearch, RefusesASequenceThatIsNotWhereItShouldBe) {
  const auto prefix = stored({{{1, 2, 3}}, {{4, 5}}, {{6, 7, 8}}});
  const std::uint64_t pointers = formats::mmidx_header_bytes + std::uint64_t{4} * 3;
  std::vector<piece> found;
  for (const std::int64_t pointer : {std::int64_t{7}, std::int64_t{8}, std::int64_t{5},
                                     std::int64_t{-2}, std::int64_t{1} << 62}) {
    overwrite(pointers + 8, pointer);
    const document_search search(index_columns{prefix});
    EXPECT_THAT(fault([&] { search.pieces(0, 8, found); }),
                AllOf(HasSubstr("data.idx: sequence "), HasSubstr("inspect_dataset verify")))
        << pointer;
  }
  overwrite(pointers + 8, 6);
  overwrite(formats::mmidx_header_bytes, 3 | std::int64_t{-1} << 32);  // lengths 3, -1
  const document_search search(index_columns{prefix});
  EXPECT_THAT(fault([&] { search.pieces(0, 8, found); }), HasSubstr("sequence 1 of -1 tokens"));
}

TEST_F(DocumentSearch, RefusesADocumentIndexThatDoesNotAscend) {
  const auto prefix = stored({{{1}, {2}}, {{3}}, {{4}}});
  overwrite(formats::mmidx_header_bytes + std::uint64_t{12} * 4 + 8, 9);  // document 0 ends at 9
  const document_search search(index_columns{prefix});
  EXPECT_THAT(fault([&] { (void)search.document_of(3); }), HasSubstr("in no document"));
}

// If any byte of an index is altered, the search gives a correct answer or an error. It never reads
// outside the data.
TEST_F(DocumentSearch, SurvivesEveryAlteredByte) {
  const auto prefix = stored({{{1, 2, 3}, {}}, {{4, 5}}, {}, {{6, 7, 8}}});
  const auto whole = test::read_bytes(folder_ / "data.idx");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {1, 2, 0x40, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[i] ^= static_cast<std::byte>(flip);
      test::write_bytes(folder_ / "data.idx", bytes);
      for (const auto access : {index_access::map_if_possible, index_access::pread}) {
        (void)fault([&] {
          const document_search search(index_columns(prefix, access));
          std::vector<piece> found;
          search.pieces(0, search.columns().token_count(), found);
          for (std::int64_t s = 0; s < search.columns().sequence_count(); ++s) {
            (void)fault([&] { (void)search.document_of(s); });
            (void)fault([&] { (void)search.first_token_of(s); });
          }
        });
      }
    }
  }
}

TEST_F(DocumentSearch, ChecksAtOpenWhatADatasetChecks) {
  const auto prefix = stored({{{1, 2, 3}}, {{4, 5}}});
  const auto whole = test::read_bytes(folder_ / "data.idx");
  const auto opening = [&](index_access access) {
    return fault([&] { (void)index_columns(prefix, access); });
  };
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_bytes(folder_ / "data.idx", std::span(whole).first(size));
    const std::string expected = fault([&] { (void)indexed_dataset(prefix); });
    EXPECT_EQ(opening(index_access::pread), expected) << size;
    EXPECT_EQ(opening(index_access::map_if_possible), expected) << size;
  }
  test::write_bytes(folder_ / "data.idx", whole);
  test::write_bytes(folder_ / "data.bin", std::span(whole).first(8));
  EXPECT_THAT(opening(index_access::pread), HasSubstr("data.bin: 8 bytes, expected 10"));
}

// The search works for document numbers of more than 31 bits. The file is almost entirely a hole.
// Its first 2^31 + 5 sequences and documents have no tokens. They are followed by 1,000 documents
// of three tokens each.
TEST_F(DocumentSearch, CountsBeyond31Bits) {
  constexpr std::int64_t empty = (std::int64_t{1} << 31) + 5;
  constexpr std::int64_t full = 1000;
  const auto path = folder_ / "huge.idx";
  const auto header =
      formats::encode_mmidx_header(formats::dtype::uint16, empty + full, empty + full);
  {
    const io::unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const io::unique_fd bin(
        ::open((folder_ / "huge.bin").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    io::pwrite_all(fd, header, 0, path);
    std::vector<std::int32_t> lengths(full, 3);
    std::vector<std::int64_t> pointers;
    std::vector<std::int64_t> ends;
    for (std::int64_t i = 0; i < full; ++i) {
      pointers.push_back(6 * i);
      ends.push_back(empty + i);
    }
    ends.push_back(empty + full);
    constexpr std::uint64_t count = empty + full;
    const auto at = formats::mmidx_header_bytes;
    io::pwrite_all(fd, std::as_bytes(std::span(lengths)), at + 4 * empty, path);
    io::pwrite_all(fd, std::as_bytes(std::span(pointers)), at + 4 * count + 8 * empty, path);
    // In the document index, entries 0 to `empty` - 1 are 0. So documents 0 to `empty` - 2 are
    // empty, and document `empty` - 1 contains all empty sequences.
    io::pwrite_all(fd, std::as_bytes(std::span(ends)), at + 12 * count + 8 * empty, path);
    if (::ftruncate(bin.get(), 6 * full) != 0) GTEST_SKIP() << "no sparse files here";
  }
  for (const auto access : {index_access::map_if_possible, index_access::pread}) {
    const document_search search(index_columns(folder_ / "huge", access));
    ASSERT_EQ(search.columns().document_count(), empty + full);
    std::vector<piece> found;
    search.pieces(4, 7, found);
    EXPECT_THAT(
        found, ElementsAre(piece{empty + 1, 1, 2}, piece{empty + 2, 0, 3}, piece{empty + 3, 0, 2}));
    EXPECT_EQ(search.document_of(empty + 1), empty + 1);
    EXPECT_EQ(search.document_of(17), empty - 1);
    EXPECT_EQ(search.first_token_of(empty + 999), 2997);
  }
}

}  // namespace
}  // namespace millrace::dataset
