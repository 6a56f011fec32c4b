// SPDX-License-Identifier: Apache-2.0
#include "service/cli/events.hpp"

#include <gtest/gtest.h>

#include "api/types/event.hpp"

namespace vfmgr {
namespace {

std::string event_line(std::uint64_t number, std::string detail = "VM vm1 started") {
    Event event;
    event.number = number;
    event.kind = EventKind::vm_started;
    event.vm = "vm1";
    event.detail = std::move(detail);
    std::string text;
    append_json(text, event);
    return text;
}

TEST(EventPrinter, JsonIsAsTheApiSentIt) {
    Options options;
    options.format = Format::json;
    EventPrinter printer(options);
    EXPECT_EQ(printer.text_of(R"({"kind":"later"})"), "{\"kind\":\"later\"}\n");
}

TEST(EventPrinter, ATableHasOneHeaderAndColumnsThatStay) {
    Options const options;
    EventPrinter printer(options);
    auto const first = printer.text_of(event_line(7));
    auto const header = first.substr(0, first.find('\n') + 1);
    EXPECT_TRUE(header.starts_with("EVENT    AT"));
    auto const line = first.substr(header.size());
    EXPECT_EQ(line.find("vm_started"), header.find("KIND"));
    EXPECT_EQ(line.find("vm1"), header.find("VM"));
    EXPECT_EQ(line.find("VM vm1 started"), header.find("DETAIL"));
    EXPECT_TRUE(line.ends_with("VM vm1 started\n"));
    auto const second = printer.text_of(event_line(12345));
    EXPECT_EQ(second.find("KIND"), std::string::npos);
    EXPECT_EQ(second.find("vm_started"), line.find("vm_started"));
}

TEST(EventPrinter, OtherFormatsToo) {
    Options options;
    options.format = Format::csv;
    EventPrinter csv(options);
    auto const first = csv.text_of(event_line(7, "a, b"));
    EXPECT_TRUE(first.starts_with("event,at,kind,pf,vf,vm,attachment,detail\r\n7,")) << first;
    EXPECT_TRUE(first.ends_with(",vm_started,,,vm1,,\"a, b\"\r\n")) << first;
    EXPECT_TRUE(csv.text_of(event_line(8)).starts_with("8,"));
    options.format = Format::yaml;
    EventPrinter yaml(options);
    auto const document = yaml.text_of(event_line(7));
    EXPECT_TRUE(document.starts_with("---\nnumber: 7\n")) << document;
    EXPECT_NE(document.find("\nkind: vm_started\n"), std::string::npos) << document;
    options.format = Format::name;
    EventPrinter names(options);
    EXPECT_EQ(names.text_of(event_line(7)), "7\n");
}

TEST(EventPrinter, ColumnsAreChosen) {
    Options options;
    options.columns = {"kind", "vm", "detail"};
    EventPrinter table(options);
    auto const first = table.text_of(event_line(7));
    EXPECT_EQ(first,
              "KIND                  VM            DETAIL\n"
              "vm_started            vm1           VM vm1 started\n");
    options.format = Format::csv;
    EventPrinter csv(options);
    EXPECT_EQ(csv.text_of(event_line(7)), "kind,vm,detail\r\nvm_started,vm1,VM vm1 started\r\n");
}

TEST(EventPrinter, NoHeadersAndNoControlCharacters) {
    Options options;
    options.no_headers = true;
    EventPrinter printer(options);
    auto const line = printer.text_of(event_line(7, "a\x1b[1m"));
    EXPECT_TRUE(line.starts_with("7 "));
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

// A newer vfmgrd has kinds that this vfctl does not know.
TEST(EventPrinter, WhatItCantReadIsShownAsItCame) {
    Options const options;
    EventPrinter printer(options);
    EXPECT_EQ(printer.text_of(R"({"kind":"later"})"), "{\"kind\":\"later\"}\n");
    EXPECT_EQ(printer.text_of("no JSON"), "no JSON\n");
}

}  // namespace
}  // namespace vfmgr
