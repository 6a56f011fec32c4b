// SPDX-License-Identifier: Apache-2.0
// The reading of an answer, in whatever parts it comes.
#include "api/http/outgoing.hpp"

#include <gtest/gtest.h>

namespace vfmgr::http {
namespace {

using Of = AnswerReader::Of;

// Reads it in parts of one octet; the last call says what is wrong.
std::optional<Unreadable> read_slowly(AnswerReader& reader, std::string_view text) {
    std::optional<Unreadable> fault;
    for (std::size_t i = 0; i < text.size() && !fault; ++i) {
        fault = reader.read(text.substr(i, 1));
        if (!fault && reader.has_header()) fault = reader.read({});
    }
    return fault;
}

// Beast 1.74 asserts that the last chunk does not come in parts.
TEST(AnswerReader, AChunkedBodyMayComeOctetByOctet) {
    AnswerReader empty(Of::get);
    EXPECT_FALSE(read_slowly(empty,
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "0\r\n\r\n"));
    EXPECT_TRUE(empty.keeps_connection());
    AnswerReader full(Of::get);
    EXPECT_FALSE(read_slowly(full,
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n"));
    EXPECT_TRUE(full.keeps_connection());
    EXPECT_EQ(full.response().body, "abc");
}

// Whoever follows a stream waits for an event, not for the next one.
TEST(AnswerReader, AChunkIsTakenWhenItIsThere) {
    AnswerReader reader(Of::get);
    std::string const header = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_FALSE(read_slowly(reader, header + "1\r\na"));
    EXPECT_FALSE(read_slowly(reader, "\r\n"));
    EXPECT_EQ(reader.take_body(), "a");
    EXPECT_FALSE(read_slowly(reader, "3\r\nbcd\r\n"));
    EXPECT_EQ(reader.take_body(), "bcd");
}

TEST(AnswerReader, ATrailerIsNoHeader) {
    AnswerReader reader(Of::get);
    EXPECT_FALSE(read_slowly(reader,
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                             "ETag: \"1\"\r\n\r\n0\r\nETag: \"2\"\r\nLocation: /\r\n\r\n"));
    ASSERT_TRUE(reader.done());
    auto const answer = reader.response();
    EXPECT_EQ(answer.headers.at("etag"), "\"1\"");
    EXPECT_FALSE(answer.headers.contains("location"));
}

TEST(AnswerReader, ItsEndIsWhereItSaysAndNothingMayFollow) {
    AnswerReader head(Of::head);
    EXPECT_FALSE(head.read("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"));
    EXPECT_TRUE(head.keeps_connection());
    AnswerReader more(Of::get);
    EXPECT_FALSE(more.read("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200"));
    EXPECT_TRUE(more.done());
    EXPECT_FALSE(more.keeps_connection());
    AnswerReader cut(Of::get);
    EXPECT_FALSE(cut.read("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nab"));
    EXPECT_TRUE(cut.end());
    AnswerReader open(Of::get);
    EXPECT_FALSE(open.read("HTTP/1.1 200 OK\r\n\r\nab"));
    EXPECT_FALSE(open.read({}));
    EXPECT_FALSE(open.end());
    EXPECT_EQ(open.response().body, "ab");
    EXPECT_TRUE(AnswerReader(Of::get).end()) << "nothing came";
}

TEST(AnswerReader, ItsLimitsHoldBeforeAnythingIsReserved) {
    AnswerReader length(Of::get);
    auto const fault = length.read("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc");
    ASSERT_TRUE(fault);
    EXPECT_TRUE(fault->too_large);
    AnswerReader header(Of::get);
    EXPECT_TRUE(header.read("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'a')));
    AnswerReader stream(Of::get);
    EXPECT_FALSE(stream.read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    stream.take_as_it_comes();
    std::string const chunk = "1000000\r\n" + std::string(0x1000000, 'x') + "\r\n";
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(stream.read(chunk));
        EXPECT_EQ(stream.take_body().size(), 0x1000000U);
    }
}

}  // namespace
}  // namespace vfmgr::http
