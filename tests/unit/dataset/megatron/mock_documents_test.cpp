// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron/mock_documents.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

TEST(FillMockDocument, CountsOverTheVocabularyAndEnds) {
  std::vector<std::uint16_t> document(8);
  fill_mock_document(std::span(document), 4, 9);
  EXPECT_THAT(document, testing::ElementsAre(1, 2, 3, 0, 1, 2, 3, 9));
  fill_mock_document(std::span(document).first(1), 4, 9);
  EXPECT_EQ(document[0], 9);
}

TEST(NumpyGenerator, DrawsNothingForOneNumber) {
  numpy_generator one(7);
  numpy_generator other(7);
  EXPECT_EQ(one.integer(5, 6), 5);
  EXPECT_EQ(one.next64(), other.next64());
}

}  // namespace
}  // namespace millrace::dataset
