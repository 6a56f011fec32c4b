// SPDX-License-Identifier: Apache-2.0
#include "api/types/pci_address.hpp"

#include <fmt/compile.h>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {

namespace {

std::optional<PciAddress> parse_function(std::string_view text) {
    std::uint64_t domain = 0;
    std::string_view rest = text;
    auto const first = take_until(rest, ':');
    if (!first) return std::nullopt;
    std::string_view bus_text = *first;
    if (auto const second = take_until(rest, ':')) {
        // A 32-bit domain behind VMD has five to eight digits, never padded beyond four.
        auto const parsed = parse_digits(*first, {.base = 16, .digits_min = 4, .digits_max = 8});
        if (!parsed) return std::nullopt;
        domain = *parsed;
        bus_text = *second;
    }
    auto const device_text = take_until(rest, '.');
    if (!device_text) return std::nullopt;
    auto const bus = parse_digits(bus_text, {.base = 16, .digits_min = 2, .digits_max = 2});
    auto const device =
        parse_digits(*device_text, {.base = 16, .digits_min = 2, .digits_max = 2, .max = 31});
    auto const function = parse_digits(rest, {.base = 8, .digits_min = 1, .digits_max = 1});
    if (!bus || !device || !function) return std::nullopt;
    return PciAddress{static_cast<std::uint32_t>(domain), static_cast<std::uint8_t>(*bus),
                      static_cast<std::uint8_t>(*device), static_cast<std::uint8_t>(*function)};
}

}  // namespace

template <class F, Of<VfId> V>
void fields(F& f, V& vf) {
    f.value("pf", vf.pf);
    f.value("index", vf.index);
}

Result<PciAddress> PciAddress::parse(std::string_view text) {
    if (auto const address = parse_function(text)) return *address;
    return fail(Problem::invalid_request,
                fmt::format("{} is not a PCI address such as 0000:3b:00.2", quoted(text)),
                "give domain:bus:device.function in hexadecimal, as lspci -D prints it");
}

std::string to_string(PciAddress const& address) {
    // One observation of a thousand VFs formats some ten thousand of these.
    return fmt::format(FMT_COMPILE("{:04x}:{:02x}:{:02x}.{:x}"), address.domain, address.bus,
                       address.device, address.function);
}

std::string to_string(VfId const& vf) {
    return fmt::format("{}/{}", to_string(vf.pf), vf.index);
}

template struct Json<VfId>;

}  // namespace vfmgr
