// SPDX-License-Identifier: Apache-2.0
#include "output/dataset_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using formats::dtype;

struct contents {
  std::vector<std::byte> bin;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> document_index = {0};
};

contents random_contents(std::mt19937_64& random, dtype type, std::size_t sequences) {
  contents made;
  for (std::size_t i = 0; i < sequences; ++i) {
    made.lengths.push_back(static_cast<std::int32_t>(random() % 5));
    const std::size_t bytes =
        static_cast<std::size_t>(made.lengths.back()) * formats::size_bytes(type);
    for (std::size_t b = 0; b < bytes; ++b) made.bin.push_back(static_cast<std::byte>(random()));
    for (; random() % 3 != 0;) made.document_index.push_back(static_cast<std::int64_t>(i));
  }
  made.document_index.push_back(static_cast<std::int64_t>(sequences));
  return made;
}

class DatasetWriter : public testing::Test {
 protected:
  fs::path prefix() const { return folder_ / "out"; }
  fs::path bin() const { return folder_ / "out.bin"; }
  fs::path idx() const { return folder_ / "out.idx"; }

  void expect_files(const contents& wanted, dtype type) const {
    EXPECT_TRUE(test::read_bytes(bin()) == wanted.bin);
    EXPECT_TRUE(test::read_bytes(idx()) ==
                formats::encode_mmidx(type, wanted.lengths, wanted.document_index));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2) << "and nothing else";
  }

  // Writes a dataset in pieces of 0 to 2 * `usual` sequences each. Tokens and document ends come in
  // pieces of random sizes too, so they may be written before or after their sequences.
  void write_in_pieces(const contents& from, dtype type, std::mt19937_64& random,
                       std::size_t usual) const {
    dataset_writer writer(prefix(), {.type = type});
    std::size_t sequence = 0;
    std::size_t document = 1;
    std::size_t byte = 0;
    while (sequence < from.lengths.size() || document < from.document_index.size() ||
           byte < from.bin.size()) {
      const std::size_t sequences =
          std::min(random() % (2 * usual + 1), from.lengths.size() - sequence);
      const std::size_t documents =
          std::min(random() % (2 * usual + 1), from.document_index.size() - document);
      const std::size_t bytes =
          std::min(formats::size_bytes(type) * (random() % (5 * usual)), from.bin.size() - byte);
      std::vector<std::int64_t> ends;
      for (std::size_t i = 0; i < documents; ++i) {
        ends.push_back(from.document_index[document + i] - static_cast<std::int64_t>(sequence));
      }
      writer.append(std::span(from.bin).subspan(byte, bytes),
                    std::span(from.lengths).subspan(sequence, sequences), ends);
      sequence += sequences;
      document += documents;
      byte += bytes;
    }
    EXPECT_EQ(writer.sequence_count(), static_cast<std::int64_t>(from.lengths.size()));
    EXPECT_EQ(writer.document_count(), static_cast<std::int64_t>(from.document_index.size()) - 1);
    EXPECT_EQ(writer.token_count(),
              static_cast<std::int64_t>(from.bin.size() / formats::size_bytes(type)));
    (void)writer.finish({});
    publish_dataset(writer.paths(), writer.sidecars());
  }

  void write(const contents& from, dtype type) const {
    dataset_writer writer(prefix(), {.type = type});
    const auto& ends = from.document_index;
    writer.append(from.bin, from.lengths, std::span(ends).subspan(1));
    (void)writer.finish({});
    publish_dataset(writer.paths(), writer.sidecars());
  }

  test::temp_folder folder_{test::quick_folder()};
};

// However the pieces are cut, the streamed index must equal the one that is built in memory.
TEST_F(DatasetWriter, WritesWhatTheCodecEncodes) {
  std::mt19937_64 random(test::seed(21));
  for (const dtype type : {dtype::uint16, dtype::int32, dtype::uint8, dtype::float64}) {
    for (const std::size_t sequences : {1U, 2U, 50U, 1000U}) {
      SCOPED_TRACE(testing::Message() << name(type) << " " << sequences);
      const contents made = random_contents(random, type, sequences);
      write_in_pieces(made, type, random, 1 + sequences / 20);
      expect_files(made, type);
    }
  }
}

// Writes more sequences and documents than fit into any buffer through which they are copied.
TEST_F(DatasetWriter, WritesManySequencesAndDocuments) {
  std::mt19937_64 random(test::seed(22));
  const contents made = random_contents(random, dtype::uint16, 140'000);
  ASSERT_GT(made.document_index.size(), 131'072U);
  write_in_pieces(made, dtype::uint16, random, 20'000);
  expect_files(made, dtype::uint16);
}

TEST_F(DatasetWriter, WritesMegatronsEmptyDataset) {
  write(contents{}, dtype::uint16);
  EXPECT_EQ(test::read_bytes(idx()), test::read_bytes(test::golden("megatron/idx_empty.idx")));
  EXPECT_EQ(fs::file_size(bin()), 0U);
}

// Pointers are computed in 64 bits. Offsets in the .bin exceed 2^31 even in medium-sized datasets.
TEST_F(DatasetWriter, ComputesPointersInSixtyFourBits) {
  const std::vector<std::int32_t> lengths(3, 2'000'000'000);
  const std::vector<std::int64_t> ends = {3};
  dataset_writer writer(prefix(), {.type = dtype::int32});
  writer.append({}, lengths, ends);  // tokens do not matter in this test
  (void)writer.finish({});
  publish_dataset(writer.paths(), writer.sidecars());
  const std::vector<std::int64_t> document_index = {0, 3};
  EXPECT_EQ(test::read_bytes(idx()), formats::encode_mmidx(dtype::int32, lengths, document_index));
}

TEST_F(DatasetWriter, ShowsNoFinalNameBeforePublish) {
  dataset_writer writer(prefix(), {.type = dtype::uint16});
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  };
  writer.append({}, {}, std::vector<std::int64_t>{0});
  EXPECT_THAT(names(), testing::UnorderedElementsAre("out.bin.partial", "out.idx.partial",
                                                     "out.documents.partial"));
  (void)writer.finish({});
  EXPECT_FALSE(fs::exists(bin()));
  EXPECT_FALSE(fs::exists(idx()));
}

TEST_F(DatasetWriter, LeavesNoFileWithoutPublish) {
  for (const bool finished : {false, true}) {
    {
      dataset_writer writer(prefix(), {.type = dtype::uint16});
      writer.append({}, {}, std::vector<std::int64_t>{0, 0});
      if (finished) (void)writer.finish({});
    }
    EXPECT_TRUE(fs::is_empty(folder_.path())) << finished;
  }
}

TEST_F(DatasetWriter, KeepsTheOldPairWithoutPublish) {
  test::write_text(bin(), "old bin");
  test::write_text(idx(), "old idx");
  {
    dataset_writer writer(prefix(), {.type = dtype::uint16});
    (void)writer.finish({});
  }
  EXPECT_EQ(test::read_text(bin()), "old bin");
  EXPECT_EQ(test::read_text(idx()), "old idx");
}

TEST_F(DatasetWriter, ReplacesTheOldPair) {
  test::write_text(bin(), std::string(10'000, 'x'));
  test::write_text(idx(), std::string(10'000, 'x'));
  std::mt19937_64 random(23);
  const contents made = random_contents(random, dtype::int32, 10);
  write(made, dtype::int32);
  expect_files(made, dtype::int32);
}

// A partial file that a killed run left is overwritten. It may be longer than the new file.
TEST_F(DatasetWriter, StartsLeftPartialFilesAfresh) {
  for (const char* left : {"out.bin.partial", "out.idx.partial", "out.documents.partial"}) {
    test::write_text(folder_ / left, std::string(100'000, 'x'));
  }
  std::mt19937_64 random(24);
  const contents made = random_contents(random, dtype::uint16, 10);
  write(made, dtype::uint16);
  expect_files(made, dtype::uint16);
}

// The old .idx must be removed before the .bin is replaced: together with a new .bin, it would open
// without an error but give wrong data.
TEST_F(DatasetWriter, RemovesTheOldIdxBeforeTheBinAndNamesTheNewOneLast) {
  test::write_text(bin(), "old bin");
  test::write_text(idx(), "old idx");
  dataset_writer writer(prefix(), {.type = dtype::uint16});
  (void)writer.finish({});
  fs::remove(bin());
  fs::create_directory(bin());  // a file cannot be renamed to this
  EXPECT_THROW(publish_dataset(writer.paths(), writer.sidecars()), io_error);
  EXPECT_FALSE(fs::exists(idx()));
}

TEST_F(DatasetWriter, TouchesNoBinWhileTheOldIdxStays) {
  test::write_text(bin(), "old bin");
  dataset_writer writer(prefix(), {.type = dtype::uint16});
  (void)writer.finish({});
  fs::create_directory(idx());  // unlink cannot remove this
  EXPECT_THROW(publish_dataset(writer.paths(), writer.sidecars()), io_error);
  EXPECT_EQ(test::read_text(bin()), "old bin");
}

TEST_F(DatasetWriter, RefusesASecondWriterOfOnePrefix) {
  const dataset_writer first(prefix(), {.type = dtype::uint16});
  EXPECT_THROW(dataset_writer(prefix(), {.type = dtype::uint16}), io_error);
  EXPECT_TRUE(fs::exists(folder_ / "out.bin.partial")) << "the first one's files stay";
}

TEST_F(DatasetWriter, NamesAFolderThatIsNotThere) {
  try {
    const dataset_writer writer(folder_ / "none/out", {.type = dtype::uint16});
    ADD_FAILURE() << "opened";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOENT);
  }
}

// ---- resuming after a writer was stopped ------------------------------------------------------

dataset_options all_sidecars_on() {
  return {.type = dtype::uint16,
          .checksums = true,
          .provenance = true,
          .quarantine = true,
          .mask = true,
          .digests = true};
}

std::size_t tokens_of(std::int64_t document) {
  return static_cast<std::size_t>(document % 7 * 40'001 + document % 3);
}

/// The bits of a document, and five more.
formats::bit_buffer mask_of(std::int64_t document) {
  const std::size_t tokens = tokens_of(document);
  formats::bit_buffer bits;
  bits.append_run(false, tokens / 3);
  bits.append_run(true, tokens - tokens / 3);
  bits.append_run(document % 2 == 0, 5);
  return bits;
}

// Appends documents [begin, end) of a dataset. The contents of a document depend only on its index.
void append_documents(dataset_writer& writer, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::vector<std::uint16_t> ids(tokens_of(i), static_cast<std::uint16_t>(i));
    const auto length = static_cast<std::int32_t>(ids.size());
    const std::int64_t document_end = 1;
    text_digest digest{};
    digest[0] = static_cast<std::byte>(i);
    writer.append_digests(std::span(&digest, 1));
    writer.append(std::as_bytes(std::span(ids)), std::span(&length, 1),
                  std::span(&document_end, 1));
    writer.append_mask(mask_of(i).bits(), 0, ids.size());
    const auto offset = static_cast<std::uint64_t>(i) * 100;
    const formats::source_place place{0, i + 1, offset, offset + 50};
    writer.append_places(std::span(&place, 1));
    if (i % 5 == 0) writer.append_bad("bad line " + std::to_string(i) + "\n");
  }
}

void complete(dataset_writer& writer) {
  (void)writer.finish(std::vector<formats::src_input>{{"in.jsonl"}});
  writer.finish_meta("{}\n");
  publish_dataset(writer.paths(), writer.sidecars());
}

// A resuming writer removes everything that was written to the files after the saved state.
TEST_F(DatasetWriter, GoesOnFromAnySavedState) {
  constexpr std::int64_t documents = 40;
  const auto file = [&](const char* name, const char* suffix) {
    return test::read_bytes(folder_ / (std::string(name) + suffix));
  };
  {
    dataset_writer writer(folder_ / "whole", all_sidecars_on());
    append_documents(writer, 0, documents);
    complete(writer);
    formats::bit_buffer bits;
    for (std::int64_t i = 0; i < documents; ++i) bits.append(mask_of(i).bits(), 0, tokens_of(i));
    EXPECT_TRUE(file("whole", ".mask") == test::encode_mask(bits.bits()));
    EXPECT_EQ(digest_file(folder_ / "whole.digests").documents(), documents);
  }
  for (const std::int64_t stop : {0, 1, 7, 25, 39, 40}) {
    for (const bool finished : {false, true}) {
      SCOPED_TRACE(testing::Message() << "stopped at " << stop << ", finished " << finished);
      dataset_state saved;
      {
        dataset_writer writer(prefix(), all_sidecars_on());
        writer.keep();
        append_documents(writer, 0, stop);
        saved = writer.state();
        append_documents(writer, stop, documents);
        if (finished) (void)writer.finish(std::vector<formats::src_input>{{"another.jsonl"}});
      }
      dataset_writer writer(prefix(), all_sidecars_on(), saved);
      append_documents(writer, stop, documents);
      complete(writer);
      for (const char* suffix :
           {".bin", ".idx", ".sum", ".src", ".bad", ".mask", ".digests", ".meta"}) {
        EXPECT_TRUE(file("out", suffix) == file("whole", suffix)) << suffix;
      }
    }
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 16) << "and nothing else";
}

TEST_F(DatasetWriter, RefusesToGoOnWithFilesThatAreTooShort) {
  dataset_state saved;
  {
    dataset_writer writer(prefix(), all_sidecars_on());
    writer.keep();
    append_documents(writer, 0, 9);
    saved = writer.state();
  }
  fs::resize_file(folder_ / "out.bin.partial", saved.bin_bytes - 1);
  EXPECT_THROW(dataset_writer(prefix(), all_sidecars_on(), saved), config_error);
}

// Old sidecars that the new dataset lacks are removed, because they would describe other bytes.
TEST_F(DatasetWriter, RemovesOldSidecarsThatTheNewDatasetLacks) {
  for (const char* old : {"out.sum", "out.src", "out.bad", "out.meta"}) {
    test::write_text(folder_ / old, "old");
  }
  write(contents{}, dtype::uint16);
  expect_files(contents{}, dtype::uint16);
}

// If a run is killed between two renames, calling publish_dataset() again does the remaining
// renames.
TEST_F(DatasetWriter, PublishesWhatIsLeftToPublish) {
  dataset_writer writer(prefix(), all_sidecars_on());
  append_documents(writer, 0, 3);
  (void)writer.finish({});
  writer.finish_meta("{}\n");
  fs::rename(folder_ / "out.meta.partial", folder_ / "out.meta");
  fs::rename(folder_ / "out.bin.partial", folder_ / "out.bin");
  publish_dataset(writer.paths(), writer.sidecars());
  publish_dataset(writer.paths(), writer.sidecars());
  for (const char* suffix :
       {".bin", ".idx", ".sum", ".src", ".bad", ".mask", ".digests", ".meta"}) {
    EXPECT_TRUE(fs::exists(folder_ / ("out" + std::string(suffix)))) << suffix;
  }
}

// A suffix is appended to the whole prefix and replaces no part of it: "v1.2" must not become
// "v1.bin".
TEST(DatasetPaths, AppendSuffixesToTheWholePrefix) {
  const dataset_paths paths("out/web.v1.2");
  EXPECT_EQ(paths.bin, "out/web.v1.2.bin");
  EXPECT_EQ(paths.idx, "out/web.v1.2.idx");
}

}  // namespace
}  // namespace millrace::preprocess
