"""Gemini models through Google's generateContent. The hook is in `coordbench_google.plugin`."""
