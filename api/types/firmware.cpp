// SPDX-License-Identifier: Apache-2.0
#include "api/types/firmware.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

std::string word(bool value) {
    return value ? "True" : "False";
}
std::string word(std::uint16_t value) {
    return std::to_string(value);
}
std::string word(PortType value) {
    return std::string(enum_name(value));
}

}  // namespace

template <class F, Of<FirmwareSettings> V>
void fields(F& f, V& settings) {
    for_each_firmware_setting(
        [&](char const* name, auto member) { f.maybe(name, settings.*member); });
}

template <class F, Of<FirmwareTool> V>
void fields(F& f, V& tool) {
    f.value("name", tool.name);
    f.value("version", tool.version);
}

template <class F, Of<DevlinkParameter> V>
void fields(F& f, V& parameter) {
    f.value("name", parameter.name);
    f.value("mode", parameter.mode);
    f.value("value", parameter.value);
}

template <class F, Of<FirmwareCard> V>
void fields(F& f, V& card) {
    f.value("pci", card.pci);
    f.value("functions", card.functions);
    f.value("device_type", card.device_type);
    f.nullable("tool", card.tool);
    f.nullable("default", card.by_default);
    f.nullable("current", card.current);
    f.nullable("next", card.next);
    f.value("counts_per_port", card.counts_per_port);
    f.value("devlink", card.devlink);
    f.value("boot_id", card.boot_id);
    f.nullable("problem", card.problem);
}

template <class F, Of<FirmwareTries> V>
void fields(F& f, V& tries) {
    f.value("settings", tries.settings);
    f.value("boots", tries.boots);
}

template <class F, Of<FirmwareView> V>
void fields(F& f, V& view) {
    fields(f, view.card);
    f.nullable("pending", view.pending);
    f.value("in_use", view.in_use);
    f.nullable("tries", view.tries);
}

template <class F, Of<FirmwareRequest> V>
void fields(F& f, V& request) {
    f.value("settings", request.settings);
}

bool empty(FirmwareSettings const& settings) {
    return settings == FirmwareSettings{};
}

FirmwareSettings only_named(FirmwareSettings const& of, FirmwareSettings const& desired) {
    FirmwareSettings part;
    for_each_firmware_setting([&](char const*, auto member) {
        if (desired.*member) part.*member = of.*member;
    });
    return part;
}

FirmwareSettings differing(FirmwareSettings const& desired, FirmwareSettings const& is) {
    FirmwareSettings part;
    for_each_firmware_setting([&](char const*, auto member) {
        if (desired.*member && desired.*member != is.*member) part.*member = desired.*member;
    });
    return part;
}

FirmwareSettings overlay(FirmwareSettings base, FirmwareSettings const& over) {
    for_each_firmware_setting([&](char const*, auto member) {
        if (over.*member) base.*member = over.*member;
    });
    return base;
}

std::vector<std::string> assignments(FirmwareSettings const& settings) {
    std::vector<std::string> all;
    for_each_firmware_setting([&](char const* name, auto member) {
        if (settings.*member) all.push_back(fmt::format("{}={}", name, word(*(settings.*member))));
    });
    return all;
}

std::vector<std::string> numeric_assignments(FirmwareSettings const& settings) {
    std::vector<std::string> all;
    for_each_firmware_setting([&](char const* name, auto member) {
        if (settings.*member)
            all.push_back(fmt::format("{}={}", name, static_cast<unsigned>(*(settings.*member))));
    });
    return all;
}

void check(JsonReader& reader, FirmwareRequest const& request) {
    if (reader.clean() && empty(request.settings))
        reader.complain("settings", "must name at least one setting");
}

template struct Json<FirmwareSettings>;
template struct Json<FirmwareCard>;
template struct Json<FirmwareTries>;
template struct Json<FirmwareView>;
template struct Json<FirmwareRequest>;

}  // namespace vfmgr
