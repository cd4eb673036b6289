// SPDX-License-Identifier: Apache-2.0
#include "output/text_digests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using texts = std::vector<std::string_view>;

std::string hex_of(const texts& all) {
  return formats::hex(digest_of(all));
}

// The digests on the right are from Python: hashlib.sha256(b"".join(t + struct.pack("<Q", len(t))
// for t in texts)).hexdigest().
TEST(TextDigest, IsThatOfPython) {
  EXPECT_EQ(hex_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of({""}), "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
  EXPECT_EQ(hex_of({"\u00e9\n\U0001f600", ""}),
            "9e1065d328291bb77ef85219423c2cb7ea92f4c2ccb6a36e335ba58bdddf987b");
  EXPECT_EQ(hex_of({std::string(1000, 'x')}),
            "8dbe05b3bc1a47a14e89734f8c77d8fc65fdaf96890c753d3c2180d9dcf21dd7");
}

TEST(TextDigest, DependsOnWhereTextsEnd) {
  const std::vector<texts> others = {{}, {""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}, {"a"}};
  std::vector<text_digest> digests;
  for (const texts& each : others) digests.push_back(digest_of(each));
  std::ranges::sort(digests);
  EXPECT_EQ(std::ranges::adjacent_find(digests), digests.end());
}

TEST(TextDigest, DoesNotDependOnThePiecesOfATextOrOnTheProcessor) {
  std::mt19937_64 random(test::seed(92));
  for (int round = 0; round < 300; ++round) {
    formats::sha256 portable(formats::sha256::instructions::never);
    text_digester digester;
    for (std::size_t count = random() % 4; count > 0; --count) {
      const std::string text(random() % 300, static_cast<char>(random()));
      const std::uint64_t size = text.size();
      portable.update(text).update(std::as_bytes(std::span(&size, 1)));
      for (std::string_view rest = text; !rest.empty();) {
        const std::size_t piece = std::min<std::size_t>(rest.size(), random() % 70);
        digester.append(rest.substr(0, piece));
        rest.remove_prefix(piece);
      }
      digester.end_text();
    }
    EXPECT_EQ(formats::hex(digester.finish()), portable.hex());
  }
}

class TextDigests : public testing::Test {
 protected:
  std::vector<text_digest> random_digests(std::size_t count) {
    std::vector<text_digest> digests(count);
    for (text_digest& digest : digests) {
      for (std::byte& byte : digest) byte = static_cast<std::byte>(random_());
    }
    return digests;
  }
  // Appends the digests in random portions.
  void append(digest_writer& writer, std::span<const text_digest> digests) {
    while (!digests.empty()) {
      const std::size_t count = std::min<std::size_t>(digests.size(), random_() % 5);
      writer.append(digests.first(count));
      digests = digests.subspan(count);
    }
  }
  std::string write(std::span<const text_digest> digests) {
    digest_writer writer(path_);
    append(writer, digests);
    writer.finish(std::ssize(digests));
    writer.file().commit();
    return test::read_text(path_);
  }
  std::string refusal() const {
    try {
      const digest_file file(path_);
    } catch (const format_error& e) {
      return e.what();
    }
    return "none";
  }

  test::temp_folder folder_;
  std::filesystem::path path_ = folder_ / "p.digests";
  std::mt19937_64 random_{test::seed(93)};
};

TEST_F(TextDigests, AreReadAsTheyWereWritten) {
  for (const std::size_t count : {0U, 1U, 2U, 300'000U}) {  // the last is read in several pieces
    const auto digests = random_digests(count);
    EXPECT_EQ(write(digests).size(), digests_bytes(count));
    const digest_file file(path_);
    ASSERT_EQ(file.documents(), std::ssize(digests));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(file.at(static_cast<std::int64_t>(i)), digests[i]);
      if (i % 1000 == 0) file.let_go();
    }
  }
}

TEST_F(TextDigests, AreThoseOfTheGoldenFile) {
  const std::vector<text_digest> digests = {digest_of(texts{"abc"}), digest_of(texts{"a", ""})};
  EXPECT_TRUE(write(digests) == test::read_text(test::golden("sidecars/two_documents.digests")));
}

// A resumed run goes on after the documents of the last saved state, and drops what follows.
TEST_F(TextDigests, GoOnAfterAnyDocument) {
  const auto digests = random_digests(40);
  const std::string wanted = write(digests);
  for (std::size_t kept = 0; kept <= digests.size(); ++kept) {
    SCOPED_TRACE(kept);
    {
      digest_writer writer(path_);
      const std::size_t written = std::min(kept + random_() % 5, digests.size());
      append(writer, std::span(digests).first(written));
      if (kept % 2 == 0) writer.finish(static_cast<std::int64_t>(written));
      writer.file().keep();
    }
    digest_writer writer(path_, static_cast<std::int64_t>(kept));
    append(writer, std::span(digests).subspan(kept));
    writer.finish(std::ssize(digests));
    writer.file().commit();
    EXPECT_TRUE(test::read_text(path_) == wanted);
  }
}

// The checksum of the kept digests is computed in several pieces.
TEST_F(TextDigests, GoOnAfterManyDocuments) {
  const auto digests = random_digests(100'000);
  const std::string wanted = write(digests);
  {
    digest_writer writer(path_);
    writer.append(digests);
    writer.file().keep();
  }
  digest_writer writer(path_, 99'999);
  writer.append(std::span(digests).last(1));
  writer.finish(std::ssize(digests));
  writer.file().commit();
  EXPECT_TRUE(test::read_text(path_) == wanted);
}

TEST_F(TextDigests, AreNotResumedWithoutTheirFile) {
  const auto refusal_to_go_on = [&](std::int64_t documents) -> std::string {
    try {
      digest_writer writer(path_, documents);
    } catch (const config_error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal_to_go_on(0), HasSubstr("has 0 bytes, but had 16 when the run stopped"));
  {
    digest_writer writer(path_);
    writer.append(random_digests(1));
    writer.file().keep();
  }
  EXPECT_THAT(refusal_to_go_on(2), HasSubstr("has 48 bytes, but had 80 when the run stopped"));
  std::string bytes = test::read_text(path_.string() + ".partial");
  bytes[8] = 2;
  test::write_text(path_.string() + ".partial", bytes);
  EXPECT_THAT(refusal_to_go_on(1),
              HasSubstr("p.digests.partial: the header differs from the one that this run wrote"));
}

TEST_F(TextDigests, SayWhatIsDamaged) {
  const std::string good = write(random_digests(3));
  const auto refusal_of = [&](const std::string& bytes) {
    test::write_text(path_, bytes);
    const std::string said = refusal();
    EXPECT_THAT(said, StartsWith(path_.string() + ": "));
    return said;
  };
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  EXPECT_THAT(refusal_of(with(3, "l")), HasSubstr("expected the magic of a .digests file"));
  EXPECT_THAT(refusal_of(with(8, "\2")), HasSubstr("expected version 1, found 2 (at byte 8)"));
  EXPECT_THAT(refusal_of(with(12, "\7")), HasSubstr("reserved field is 7, expected 0 (at byte 12"));
  EXPECT_THAT(refusal_of(with(16 + 96, "\4")), HasSubstr("4 digests cannot be in 96 bytes"));
  EXPECT_THAT(refusal_of(good.substr(0, good.size() - 1)), HasSubstr("cannot be in 95 bytes"));
  EXPECT_THAT(refusal_of(good + "x"), HasSubstr("cannot be in 97 bytes"));
  EXPECT_THAT(refusal_of(good.substr(0, 20)), HasSubstr("file ends inside the number of docum"));
  EXPECT_THAT(refusal_of(""), HasSubstr("file ends inside the magic"));
  const std::string damaged = with(40, std::string(1, static_cast<char>(good[40] ^ 1)));
  const auto bytes = std::as_bytes(std::span(damaged));
  EXPECT_THAT(
      refusal_of(damaged),
      HasSubstr("its checksum is " + formats::hex(formats::crc32c(bytes.first(bytes.size() - 4))) +
                ", expected "));
}

TEST_F(TextDigests, NoticeEveryDamagedByte) {
  const std::string good = write(random_digests(5));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1 << random_() % 8);
    test::write_text(path_, bad);
    EXPECT_NE(refusal(), "none") << i;
    test::write_text(path_, good.substr(0, i));
    EXPECT_NE(refusal(), "none") << i;
  }
}

}  // namespace
}  // namespace millrace::preprocess
