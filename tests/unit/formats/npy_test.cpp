// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/npy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;
using test::with;
using sizes = std::vector<std::uint64_t>;

bytes golden_npy(const std::string& name) {
  return test::read_bytes(test::golden("npy/" + name));
}

std::uint64_t product(const sizes& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  return count;
}

// Returns the values that tests/golden/npy/generate.py writes into an array.
template <class T>
std::vector<T> pattern(std::uint64_t count) {
  std::vector<T> all;
  for (std::uint64_t k = 0; k < count; ++k) {
    if constexpr (std::is_floating_point_v<T>) {
      all.push_back((static_cast<T>(k) - 2) * static_cast<T>(1.5));
    } else {
      all.push_back(static_cast<T>((k + 1) * 0x9E3779B97F4A7C15U));
    }
  }
  return all;
}

template <class T>
void compare_with_numpy(const std::string& type, const std::string& name, const sizes& shape) {
  const std::string file_name = type + "_" + name + ".npy";
  SCOPED_TRACE(file_name);
  const bytes file = golden_npy(file_name);
  const std::vector<T> expected = pattern<T>(product(shape));

  EXPECT_EQ(encode_npy(std::span(expected), shape), file);

  const npy_view view = parse_npy(file);
  EXPECT_EQ(view.shape, shape);
  EXPECT_EQ(view.type, npy_type_of<T>());
  const auto elements = view.elements<T>();
  ASSERT_EQ(elements.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(elements[i], expected[i]) << i;
}

template <class T>
void compare_with_numpy(const std::string& type) {
  compare_with_numpy<T>(type, "scalar", {});
  compare_with_numpy<T>(type, "3", {3});
  compare_with_numpy<T>(type, "3x2", {3, 2});
}

TEST(Npy, AgreesWithNumpyInEveryType) {
  compare_with_numpy<std::int8_t>("i1");
  compare_with_numpy<std::int16_t>("i2");
  compare_with_numpy<std::int32_t>("i4");
  compare_with_numpy<std::int64_t>("i8");
  compare_with_numpy<std::uint8_t>("u1");
  compare_with_numpy<std::uint16_t>("u2");
  compare_with_numpy<std::uint32_t>("u4");
  compare_with_numpy<std::uint64_t>("u8");
  compare_with_numpy<float>("f4");
  compare_with_numpy<double>("f8");
}

TEST(Npy, AgreesWithNumpyInOddShapes) {
  const auto ones = [](sizes shape, std::size_t rank) {
    shape.resize(rank, 1);
    return shape;
  };
  compare_with_numpy<std::int32_t>("i4", "0", {0});
  compare_with_numpy<std::int32_t>("i4", "1", {1});
  compare_with_numpy<std::int32_t>("i4", "0x2", {0, 2});
  compare_with_numpy<std::int32_t>("i4", "2x3x4", {2, 3, 4});
  compare_with_numpy<std::int32_t>("i4", "1000000000000x0", {1000000000000, 0});
  compare_with_numpy<std::int32_t>("i4", "0x12345678901", {0, 12345678901});
  compare_with_numpy<std::int32_t>("i4", "1x1_rank32", ones({}, 32));
  compare_with_numpy<std::int32_t>("i4", "0x1_rank14", ones({0}, 14));
  compare_with_numpy<std::int32_t>("i4", "0x10_rank14", ones({0, 10}, 14));
  compare_with_numpy<std::int32_t>("i4", "0x100_rank14", ones({0, 100}, 14));
  compare_with_numpy<std::int32_t>("i4", "0x1_rank64", ones({0}, 64));
}

TEST(Npy, HandlesBooleansAsBytes) {
  const std::vector<std::uint8_t> values = {0, 1, 0, 1, 0, 1};
  const sizes shape = {3, 2};
  const bytes file = encode_npy(npy_bool, shape, std::as_bytes(std::span(values)));
  EXPECT_EQ(file, golden_npy("b1_3x2.npy"));
  const npy_view view = parse_npy(file);
  EXPECT_EQ(view.type, npy_bool);
  EXPECT_EQ(view.elements<std::uint8_t>()[1], 1);
  EXPECT_THROW((void)view.elements<std::int8_t>(), format_error);
}

TEST(Npy, GivesElementsOfTheirOwnTypeOnly) {
  const bytes file = golden_npy("i4_3.npy");
  EXPECT_THROW((void)parse_npy(file).elements<std::uint32_t>(), format_error);
  EXPECT_THROW((void)parse_npy(file).elements<std::int64_t>(), format_error);
}

// Headers are read as numpy reads them. Each line of the file has numpy's verdict, our verdict and
// a header text. See tests/golden/npy/generate.py.
TEST(NpyHeader, IsReadAsNumpyReadsIt) {
  std::istringstream lines(test::read_text(test::golden("npy/headers.tsv")));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    SCOPED_TRACE(line);
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    ASSERT_NE(second, std::string::npos);
    const std::string numpys = line.substr(0, first);
    const std::string ours = line.substr(first + 1, second - first - 1);
    const std::string text = line.substr(second + 1);
    // The offset in an error is an offset in the file, so put bytes in front of the header text.
    const std::string file = std::string(npy_prefix_bytes, ' ') + text;
    npy_header header;
    const auto refused = test::refusal(
        [&](std::span<const std::byte> all) {
          const auto part = all.subspan(npy_prefix_bytes);
          header = parse_npy_header({reinterpret_cast<const char*>(part.data()), part.size()});
        },
        std::as_bytes(std::span(file)));
    if (ours == "refused") {
      EXPECT_TRUE(refused);
      continue;
    }
    ASSERT_FALSE(refused) << refused->what();
    std::string shape;
    for (const std::uint64_t size : header.shape) shape += "," + std::to_string(size);
    shape = shape.empty() ? "scalar" : shape.substr(1);
    EXPECT_THAT(numpys, testing::AnyOf(npy_descr(header.type) + " C " + shape,
                                       npy_descr(header.type) + " F " + shape));
  }
  EXPECT_GT(count, 60U);
}

TEST(ParseNpy, RefusesEveryTruncation) {
  test::expect_every_truncation_refused(parse_npy, golden_npy("i4_3x2.npy"));
  test::expect_every_truncation_refused(parse_npy, golden_npy("f8_scalar.npy"));
}

TEST(ParseNpy, RefusesExtraBytes) {
  for (const char* name : {"i4_3x2.npy", "i4_0.npy", "u1_scalar.npy"}) {
    bytes file = golden_npy(name);
    const std::size_t size = file.size();
    for (int extra = 0; extra < 9; ++extra) {
      file.push_back(std::byte{0});
      expect_refused(parse_npy, file, size, "after the header");
    }
  }
}

TEST(ParseNpy, RefusesABadHeader) {
  const bytes file = golden_npy("i4_3x2.npy");
  for (std::size_t i = 0; i < 6; ++i) {
    expect_refused(parse_npy, with(file, i, file[i] ^ std::byte{1}), i, "not an .npy file");
  }
  expect_refused(parse_npy, with(file, 8, std::uint16_t{0}), 10, "expected '{'");
  expect_refused(parse_npy, with(file, 8, std::uint16_t{50}), 60, "expected '('");
  expect_refused(parse_npy, with(file, 8, std::uint16_t{65535}), 10, "file ends inside the header");
}

TEST(ParseNpy, RefusesOtherVersions) {
  const bytes file = golden_npy("i4_3x2.npy");
  expect_refused(parse_npy, with(file, 6, std::uint8_t{2}), 6, "version 1.0, found 2.0");
  expect_refused(parse_npy, with(file, 6, std::uint8_t{3}), 6, "version 1.0, found 3.0");
  expect_refused(parse_npy, with(file, 7, std::uint8_t{1}), 6, "version 1.0, found 1.1");
  expect_refused(parse_npy, with(file, 6, std::uint8_t{0}), 6, "version 1.0, found 0.0");
}

bytes file_of_shape(const std::string& shape) {
  const std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': " + shape + "}\n";
  byte_writer writer;
  writer.put(std::as_bytes(std::span("\x93NUMPY\x01\x00", 8)));
  writer("the header size", static_cast<std::uint16_t>(text.size()));
  writer.put(std::as_bytes(std::span(text)));
  return writer.take();
}

// Shapes are refused if their size wraps. 2^62 * 4 and 2^32 * 2^32 * 4 wrap to 0, and this file has
// 0 bytes of data.
TEST(ParseNpy, RefusesShapesThatWouldWrap) {
  for (const char* shape :
       {"(4611686018427387904,)", "(4294967296, 4294967296)", "(2147483648, 2147483648)",
        "(0, 4294967296, 4294967296)", "(4294967296, 4294967296, 0)"}) {
    expect_refused(parse_npy, file_of_shape(shape), 60,
                   std::string("2^63 - 1 bytes, found more for the shape ") + shape + " of");
  }
  for (const char* shape : {"(18446744073709551616,)", "(9223372036854775808,)"}) {
    expect_refused(parse_npy, file_of_shape(shape), 61,
                   "expected a size of at most 2^63 - 1, found '");
  }
  const bytes largest = file_of_shape("(2147483648, 1073741823)");
  expect_refused(parse_npy, largest, largest.size(), "the shape takes 9223372028264841216 bytes");
  EXPECT_FALSE(test::refusal(parse_npy, file_of_shape("(0, 2147483648, 1073741823)")));
}

TEST(ParseNpy, RefusesMoreSizesThanNumpyHas) {
  std::string shape = "(0,";
  for (int i = 1; i < 64; ++i) shape += "1,";
  EXPECT_FALSE(test::refusal(parse_npy, file_of_shape(shape + ")")));
  EXPECT_TRUE(test::refusal(parse_npy, file_of_shape(shape + "1)")));
}

TEST(ParseNpy, SurvivesEveryAlteredByte) {
  EXPECT_GT(test::survive_every_alteration(parse_npy, golden_npy("i4_3x2.npy")), 0U);
}

}  // namespace
}  // namespace millrace::formats
