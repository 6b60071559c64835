"""Where examples come from: folders, tables, arrays, idx files."""
