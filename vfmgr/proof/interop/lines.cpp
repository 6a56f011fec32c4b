// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/lines.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "api/types/text.hpp"

namespace vfmgr::interop {
namespace {

constexpr std::uint64_t u24_max = 0xff'ffff;
constexpr std::uint64_t reads_max = 255;
constexpr std::string_view hex_digits = "0123456789abcdef";

// Reads fields of a fixed number of lower-case hex digits, each with its colon.
class Fields {
  public:
    explicit Fields(std::string_view text) : rest_(text) {}
    [[nodiscard]] std::uint64_t hex(std::size_t digits, std::uint64_t max = UINT64_MAX) {
        auto const field = take_until(rest_, ':');
        auto const value = field && lower_case(*field)
                               ? parse_digits(*field, {16, digits, digits, max})
                               : std::nullopt;
        good_ = good_ && value.has_value();
        return value.value_or(0);
    }
    [[nodiscard]] bool ended() const { return good_ && rest_.empty(); }
    [[nodiscard]] std::string_view rest() const { return rest_; }
    [[nodiscard]] bool good() const { return good_; }

  private:
    static bool lower_case(std::string_view text) {
        return text.find_first_not_of(hex_digits) == std::string_view::npos;
    }
    std::string_view rest_;
    bool good_ = true;
};

// Returns the line without its terminating NUL.
std::optional<std::string_view> body(std::string_view line, std::size_t bytes) {
    if (line.size() != bytes || line.back() != '\0') return std::nullopt;
    return line.substr(0, bytes - 1);
}

// As it travels: big-endian.
struct RpingMessage {
    std::uint64_t address = 0;
    std::uint32_t rkey = 0, length = 0;
};
static_assert(sizeof(RpingMessage) == rping_message_bytes);

}  // namespace

std::optional<QueuePairEnd> parse_pingpong_line(std::string_view line) {
    auto const text = body(line, pingpong_line_bytes);
    if (!text) return std::nullopt;
    Fields fields(*text);
    static_cast<void>(fields.hex(4));  // the LID: RoCE has none
    QueuePairEnd end;
    end.qp_num = static_cast<std::uint32_t>(fields.hex(6, u24_max));
    end.psn = static_cast<std::uint32_t>(fields.hex(6, u24_max));
    end.gid = fields.rest();
    end.path_mtu = pingpong_path_mtu;
    bool const gid =
        end.gid.size() == 32 && end.gid.find_first_not_of(hex_digits) == std::string::npos;
    if (!fields.good() || !gid) return std::nullopt;
    return end;
}

std::string make_pingpong_line(QueuePairEnd const& end) {
    auto line = fmt::format("{:04x}:{:06x}:{:06x}:{:0>32}", 0, end.qp_num, end.psn, end.gid);
    line.resize(pingpong_line_bytes);
    return line;
}

bool is_perftest_version(std::string_view text) {
    auto const end = text.find('\0');
    if (text.size() != perftest_version_bytes || end == std::string_view::npos) return false;
    auto number = text.substr(0, end);
    auto const major = take_until(number, '.');
    if (!major) return false;
    auto const first = parse_digits(*major, {10, 1, 2});
    auto const second = parse_digits(number, {10, 1, 2});
    if (!first || !second) return false;
    return *first > 5 || (*first == 5 && *second >= 70);
}

bool begins_perftest_line(std::string_view bytes) {
    return bytes.size() >= 5 && bytes[4] == ':' &&
           bytes.substr(0, 4).find_first_not_of(hex_digits) == std::string_view::npos;
}

std::optional<PerftestLine> parse_perftest_line(std::string_view line) {
    auto const text = body(line, perftest_line_bytes);
    if (!text) return std::nullopt;
    Fields fields(*text);
    PerftestLine read;
    static_cast<void>(fields.hex(4));  // the LID
    read.end.reads_max =
        static_cast<std::uint8_t>(std::min<std::uint64_t>(fields.hex(4), reads_max));
    read.end.qp_num = static_cast<std::uint32_t>(fields.hex(6, u24_max));
    read.end.psn = static_cast<std::uint32_t>(fields.hex(6, u24_max));
    read.memory.rkey = static_cast<std::uint32_t>(fields.hex(8));
    read.memory.address = fields.hex(16);
    for (int i = 0; i < 16; ++i) read.end.gid += fmt::format("{:02x}", fields.hex(2));
    static_cast<void>(fields.hex(8));  // a shared receive queue's number
    if (!fields.ended()) return std::nullopt;
    return read;
}

std::string make_perftest_line(PerftestLine const& line) {
    auto text = fmt::format("{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:", 0, line.end.reads_max,
                            line.end.qp_num, line.end.psn, line.memory.rkey, line.memory.address);
    for (std::size_t i = 0; i + 1 < line.end.gid.size(); i += 2)
        text += line.end.gid.substr(i, 2) + ":";
    text += fmt::format("{:08x}:", 0);
    text.resize(perftest_line_bytes);
    return text;
}

std::uint32_t perftest_page_bytes(std::string_view text) {
    constexpr std::uint32_t least = 4096, most = 65536;  // Linux's base pages
    if (text.size() != perftest_page_size) return 0;
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, text.data(), sizeof bytes);
    bytes = be32toh(bytes);
    return bytes < least || bytes > most || !std::has_single_bit(bytes) ? 0 : bytes;
}

std::uint32_t perftest_mtu_bytes(std::string_view text) {
    if (text.size() != 2 || text[1] != '\0' || text[0] < '1' || text[0] > '5') return 0;
    return 128U << static_cast<unsigned>(text[0] - '0');
}

std::string make_perftest_mtu(std::uint32_t bytes) {
    char number = '1';
    while (bytes > 256 && number < '5') {
        bytes /= 2;
        ++number;
    }
    return {number, '\0'};
}

MemoryRegion parse_rping_message(std::span<std::byte const, rping_message_bytes> message) {
    RpingMessage read;
    std::memcpy(&read, message.data(), sizeof read);
    return {be64toh(read.address), be32toh(read.rkey), be32toh(read.length)};
}

std::array<std::byte, rping_message_bytes> make_rping_message(MemoryRegion const& mr) {
    return std::bit_cast<std::array<std::byte, rping_message_bytes>>(RpingMessage{
        htobe64(mr.address), htobe32(mr.rkey), htobe32(static_cast<std::uint32_t>(mr.length))});
}

}  // namespace vfmgr::interop
