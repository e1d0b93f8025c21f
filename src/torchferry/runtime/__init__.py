"""What users run: sessions whose errors are explained, and tables of where the time goes."""
