// SPDX-License-Identifier: Apache-2.0
#include "api/http/gzip.hpp"

#include <algorithm>
#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "api/http/uri.hpp"

namespace vfmgr::http {
namespace {

namespace zlib = boost::beast::zlib;

constexpr int level = 1;  // of 9
constexpr int window_bits = 15;
constexpr int memory_level = 8;
// Deflate, no name, no time, made on Unix.
constexpr std::string_view header("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);

void append_little_endian(std::string& out, std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift & 0xff);
}

std::string_view trimmed(std::string_view text) {
    auto const begin = std::min(text.find_first_not_of(" \t"), text.size());
    text.remove_prefix(begin);
    return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// Takes the text up to the mark, and the mark, from `rest`.
std::string_view take(std::string_view& rest, char mark) {
    auto const end = std::min(rest.find(mark), rest.size());
    auto const taken = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return taken;
}

// A weight of zero, as "q=0" and "q=0.000", means "not this one".
bool refuses(std::string_view parameter) {
    auto const weight = lower_case(std::string(parameter));
    return weight.starts_with("q=0") && weight.find_first_not_of("0.", 2) == weight.npos;
}

}  // namespace

std::string gzip(std::string_view text) {
    zlib::deflate_stream deflate;
    deflate.reset(level, window_bits, memory_level, zlib::Strategy::normal);
    std::string out(header);
    out.resize(header.size() + deflate.upper_bound(text.size()));
    zlib::z_params parts;
    parts.next_in = text.data();
    parts.avail_in = text.size();
    parts.next_out = out.data() + header.size();
    parts.avail_out = out.size() - header.size();
    boost::system::error_code error;
    deflate.write(parts, zlib::Flush::finish, error);
    if (error != zlib::error::end_of_stream) std::abort();  // `out` is too small
    out.resize(header.size() + parts.total_out);
    boost::crc_32_type crc;
    crc.process_bytes(text.data(), text.size());
    append_little_endian(out, crc.checksum());
    append_little_endian(out, static_cast<std::uint32_t>(text.size()));
    return out;
}

bool accepts_gzip(std::string_view accept_encoding) {
    std::optional<bool> named;
    bool others = false;  // "*"
    while (!accept_encoding.empty()) {
        auto element = take(accept_encoding, ',');
        auto const coding = lower_case(std::string(take(element, ';')));
        bool const wanted = !refuses(trimmed(element));
        if (coding == "gzip" || coding == "x-gzip") named = wanted;
        if (coding == "*") others = wanted;
    }
    return named.value_or(others);
}

}  // namespace vfmgr::http
